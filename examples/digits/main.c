/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Teaches a small neural network to read handwritten digits, on any device.
 *
 *   options.c    the command line
 *   data.c       the digits, from their file
 *   device.c     the place that computes
 *   tensor.c     matrices in synced buffers, and kernels on them: where the library is used most
 *   batch.c      digits on their way to the device
 *   source.c     which digits come next
 *   loader.c     a thread that prepares batches and pushes them ahead of their use
 *   network.c    the network: forward, backward, one step of learning
 *   training.c   epochs
 *   progress.c, report.c   what is printed
 *
 * The kernels are in ../kernels.
 */
#include <stdio.h>
#include <stdlib.h>

#include "options.h"
#include "progress.h"
#include "report.h"
#include "try.h"

static syncedmem_status_t train(struct training *training, uint32_t epochs, struct epoch *out_last)
{
    const struct progress progress = progress_start(epochs);
    syncedmem_status_t status = SYNCEDMEM_OK;
    for (uint32_t done = 1; done <= epochs && !status; done++) {
        status = training_epoch(training, out_last);
        if (!status)
            progress_show(&progress, done, out_last);
    }
    progress_end(&progress);
    return status;
}

/* On the host nothing is on its way that could be waited for. */
static uint32_t choose_ahead(const struct options *options, const struct device *device)
{
    enum { AHEAD_OF_A_DEVICE = 2 };
    if (options->is_ahead_given)
        return options->ahead;
    return device->stream ? AHEAD_OF_A_DEVICE : 0;
}

static syncedmem_status_t run(const struct options *options, const struct data *data,
                              struct device *device, struct training *training)
{
    struct epoch last;
    TRY(device_open(options->device, device));
    const struct plan plan = {options->seed, options->epochs, choose_ahead(options, device)};
    TRY(report_start(device, data, plan.ahead));
    TRY(training_create(device, data, plan, training));
    TRY(train(training, options->epochs, &last));
    TRY(report_digits(training));
    TRY(report_result(training, &last));
    return report_traffic(device);
}

/* Prints on success and failure alike; everything is released when it returns. */
static int learn(const struct options *options, const struct data *data)
{
    struct device device = {0};
    struct training training = {0};
    const syncedmem_status_t status = run(options, data, &device, &training);
    if (status) {
        fflush(stdout);
        fprintf(stderr, "digits: %s: %s\n", syncedmem_status_name(status),
                training_error(&training));
    }
    device_close(&device);
    training_release(&training);
    return status ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    enum { WRONG_OPTIONS = 2 };
    struct options options;
    if (!options_parse(argc, argv, &options))
        return WRONG_OPTIONS;
    if (options.help) {
        options_print_help();
        return EXIT_SUCCESS;
    }

    struct data data;
    if (!data_load(options.data, TRAINING_LEAST, &data))
        return EXIT_FAILURE;
    int outcome = learn(&options, &data);
    data_free(&data);
    if (fflush(stdout) || ferror(stdout)) {
        perror("digits: standard output");
        outcome = EXIT_FAILURE;
    }
    return outcome;
}
