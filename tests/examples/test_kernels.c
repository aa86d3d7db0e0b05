/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each kernel of the examples against a computation of its own, in double precision, on the
 * simulated device and on the host. Operands start at offsets other than 0, and nothing outside of
 * an output may change.
 */
#include <criterion/criterion.h>

#include <math.h>
#include <string.h>

#include <kernels.h>
#include <syncedmem.h>

/* Odd sizes, so that rows and columns cannot be mixed up unseen. */
enum { ROWS = 7, COLUMNS = 5, INNER = 11 };

/* Elements in front of an operand and behind it. */
enum { MARGIN = 3, MOST = ROWS * INNER };

/* ---- A place ---- */

struct bench {
    syncedmem_stream *stream; /* NULL on the host */
    kernels_set *kernels;
};

static struct bench bench_open(const char *name)
{
    struct bench bench = {0};
    syncedmem_place *place;
    cr_assert_eq(syncedmem_device_find(name, &place), SYNCEDMEM_OK);
    if (place != syncedmem_host()) {
        cr_assert_eq(syncedmem_device_set_current(place), SYNCEDMEM_OK);
        cr_assert_eq(syncedmem_stream_default(place, &bench.stream), SYNCEDMEM_OK);
    }
    cr_assert_eq(kernels_open(place, bench.stream, &bench.kernels), SYNCEDMEM_OK, "%s",
                 kernels_last_error());
    return bench;
}

static void bench_close(struct bench *bench)
{
    kernels_close(bench->kernels);
    syncedmem_stream_release(bench->stream);
}

/* Every test body runs at both places. */
#define KERNEL_TEST(name)                                                                          \
    static void check_##name(struct bench *bench);                                                 \
    Test(kernels, name##_on_sim)                                                                   \
    {                                                                                              \
        struct bench bench = bench_open("sim:0");                                                  \
        check_##name(&bench);                                                                      \
        bench_close(&bench);                                                                       \
    }                                                                                              \
    Test(kernels, name##_on_host)                                                                  \
    {                                                                                              \
        struct bench bench = bench_open("host");                                                   \
        check_##name(&bench);                                                                      \
        bench_close(&bench);                                                                       \
    }                                                                                              \
    static void check_##name(struct bench *bench)

/* ---- Operands ---- */

/* `count` elements between two margins, and a copy of all as they were at first. */
struct operand {
    syncedmem_buffer *buffer;
    size_t count;
    float first[MARGIN + MOST + MARGIN];
};

/* From -1 to 1, the same in each run, never 0. */
static float next_number(void)
{
    static uint32_t state = 12345;
    state = state * 1664525U + 1013904223U;
    return (float)((state >> 8) | 1U) / 8388608.0F - 1.0F;
}

static struct operand operand_create(size_t count)
{
    struct operand operand = {.count = count};
    void *bytes;
    cr_assert(count <= MOST);
    for (size_t i = 0; i < MARGIN + count + MARGIN; i++)
        operand.first[i] = next_number();
    const size_t size = (MARGIN + count + MARGIN) * sizeof(float);
    cr_assert_eq(syncedmem_create(size, &operand.buffer), SYNCEDMEM_OK);
    cr_assert_eq(syncedmem_mutable_cpu_data(operand.buffer, &bytes), SYNCEDMEM_OK);
    memcpy(bytes, operand.first, size);
    return operand;
}

static struct operand classes_create(size_t count)
{
    struct operand operand = operand_create(count);
    void *bytes;
    cr_assert_eq(syncedmem_mutable_cpu_data(operand.buffer, &bytes), SYNCEDMEM_OK);
    for (size_t i = 0; i < count; i++) {
        const uint32_t class = (uint32_t)(i * 3 % COLUMNS);
        memcpy((float *)bytes + MARGIN + i, &class, sizeof class);
    }
    return operand;
}

/* What the element was before any kernel. */
static double was(const struct operand *operand, size_t index)
{
    return (double)operand->first[MARGIN + index];
}

static kernels_in in(const struct bench *bench, const struct operand *operand)
{
    kernels_in in = {.offset = MARGIN * sizeof(float)};
    cr_assert_eq(bench->stream ? syncedmem_gpu_data(operand->buffer, &in.address)
                               : syncedmem_cpu_data(operand->buffer, &in.address),
                 SYNCEDMEM_OK);
    return in;
}

static kernels_out out(const struct bench *bench, const struct operand *operand)
{
    kernels_out out = {.offset = MARGIN * sizeof(float)};
    cr_assert_eq(bench->stream ? syncedmem_mutable_gpu_data(operand->buffer, &out.address)
                               : syncedmem_mutable_cpu_data(operand->buffer, &out.address),
                 SYNCEDMEM_OK);
    return out;
}

/* The elements now, after a look at the margins. */
static const float *now(const struct operand *operand)
{
    const void *bytes;
    cr_assert_eq(syncedmem_cpu_data(operand->buffer, &bytes), SYNCEDMEM_OK);
    const float *all = bytes;
    const size_t behind = MARGIN + operand->count;
    const size_t margin = MARGIN * sizeof(float);
    cr_assert_eq(memcmp(all, operand->first, margin), 0, "the margin in front was written");
    cr_assert_eq(memcmp(all + behind, operand->first + behind, margin), 0,
                 "the margin behind was written");
    return all + MARGIN;
}

static void expect_near(float got, double wanted, size_t index)
{
    cr_assert(fabs((double)got - wanted) < 1e-5, "element %zu is %g and should be %g", index,
              (double)got, wanted);
}

static void operand_release(struct operand *operand)
{
    syncedmem_release(operand->buffer);
}

/* ---- Products ---- */

/* Where row and column of a matrix are, as stored or transposed. */
struct steps {
    size_t row;
    size_t column;
};

static void expect_product(const struct operand *a, struct steps a_steps, const struct operand *b,
                           struct steps b_steps, const struct operand *c)
{
    const float *got = now(c);
    for (size_t i = 0; i < ROWS; i++) {
        for (size_t j = 0; j < COLUMNS; j++) {
            double sum = 0;
            for (size_t k = 0; k < INNER; k++)
                sum += was(a, i * a_steps.row + k * a_steps.column) *
                       was(b, k * b_steps.row + j * b_steps.column);
            expect_near(got[i * COLUMNS + j], sum, i * COLUMNS + j);
        }
    }
}

typedef syncedmem_status_t (*product_fn)(kernels_set *kernels, kernels_in a, kernels_in b,
                                         kernels_out c, uint32_t rows, uint32_t columns,
                                         uint32_t inner);

static void check_product(struct bench *bench, product_fn product, struct steps a_steps,
                          struct steps b_steps)
{
    struct operand a = operand_create(ROWS * INNER);
    struct operand b = operand_create(INNER * COLUMNS);
    struct operand c = operand_create(ROWS * COLUMNS);
    cr_assert_eq(
        product(bench->kernels, in(bench, &a), in(bench, &b), out(bench, &c), ROWS, COLUMNS, INNER),
        SYNCEDMEM_OK);
    expect_product(&a, a_steps, &b, b_steps, &c);
    operand_release(&a);
    operand_release(&b);
    operand_release(&c);
}

KERNEL_TEST(matmul)
{
    check_product(bench, kernels_matmul, (struct steps){INNER, 1}, (struct steps){COLUMNS, 1});
}

KERNEL_TEST(matmul_at)
{
    check_product(bench, kernels_matmul_at, (struct steps){1, ROWS}, (struct steps){COLUMNS, 1});
}

KERNEL_TEST(matmul_bt)
{
    check_product(bench, kernels_matmul_bt, (struct steps){INNER, 1}, (struct steps){1, INNER});
}

/* ---- Bias ---- */

KERNEL_TEST(add_bias)
{
    struct operand bias = operand_create(COLUMNS);
    struct operand inout = operand_create(ROWS * COLUMNS);
    cr_assert_eq(
        kernels_add_bias(bench->kernels, in(bench, &bias), out(bench, &inout), ROWS, COLUMNS),
        SYNCEDMEM_OK);
    const float *got = now(&inout);
    for (size_t i = 0; i < ROWS * COLUMNS; i++)
        expect_near(got[i], was(&inout, i) + was(&bias, i % COLUMNS), i);
    operand_release(&bias);
    operand_release(&inout);
}

KERNEL_TEST(bias_gradient)
{
    struct operand gradient = operand_create(ROWS * COLUMNS);
    struct operand sums = operand_create(COLUMNS);
    cr_assert_eq(kernels_bias_gradient(bench->kernels, in(bench, &gradient), out(bench, &sums),
                                       ROWS, COLUMNS),
                 SYNCEDMEM_OK);
    const float *got = now(&sums);
    for (size_t j = 0; j < COLUMNS; j++) {
        double sum = 0;
        for (size_t i = 0; i < ROWS; i++)
            sum += was(&gradient, i * COLUMNS + j);
        expect_near(got[j], sum, j);
    }
    operand_release(&gradient);
    operand_release(&sums);
}

/* ---- ReLU ---- */

KERNEL_TEST(relu)
{
    struct operand inout = operand_create(MOST);
    cr_assert_eq(kernels_relu(bench->kernels, out(bench, &inout), MOST), SYNCEDMEM_OK);
    const float *got = now(&inout);
    for (size_t i = 0; i < MOST; i++)
        expect_near(got[i], fmax(was(&inout, i), 0), i);
    operand_release(&inout);
}

KERNEL_TEST(relu_gradient)
{
    struct operand activation = operand_create(MOST);
    struct operand inout = operand_create(MOST);
    cr_assert_eq(kernels_relu(bench->kernels, out(bench, &activation), MOST), SYNCEDMEM_OK);
    cr_assert_eq(
        kernels_relu_gradient(bench->kernels, in(bench, &activation), out(bench, &inout), MOST),
        SYNCEDMEM_OK);
    const float *got = now(&inout);
    for (size_t i = 0; i < MOST; i++)
        expect_near(got[i], was(&activation, i) > 0 ? was(&inout, i) : 0, i);
    operand_release(&activation);
    operand_release(&inout);
}

/* ---- Classes ---- */

static uint32_t class_at(const struct operand *classes, size_t index)
{
    uint32_t class;
    memcpy(&class, now(classes) + index, sizeof class);
    return class;
}

/* log(sum of exp) of a row of logits, without any trick. */
static double log_sum(const struct operand *logits, size_t row)
{
    double sum = 0;
    for (size_t j = 0; j < COLUMNS; j++)
        sum += exp(was(logits, row * COLUMNS + j));
    return log(sum);
}

KERNEL_TEST(softmax_loss)
{
    struct operand logits = operand_create(ROWS * COLUMNS);
    struct operand classes = classes_create(ROWS);
    struct operand gradient = operand_create(ROWS * COLUMNS);
    struct operand losses = operand_create(ROWS);
    cr_assert_eq(kernels_softmax_loss(bench->kernels, in(bench, &logits), in(bench, &classes),
                                      out(bench, &gradient), out(bench, &losses), ROWS, COLUMNS),
                 SYNCEDMEM_OK);
    for (size_t i = 0; i < ROWS; i++) {
        const size_t class = class_at(&classes, i);
        const double all = log_sum(&logits, i);
        expect_near(now(&losses)[i], all - was(&logits, i * COLUMNS + class), i);
        for (size_t j = 0; j < COLUMNS; j++) {
            const size_t at = i * COLUMNS + j;
            const double likely = exp(was(&logits, at) - all);
            expect_near(now(&gradient)[at], (likely - (j == class ? 1 : 0)) / ROWS, at);
        }
    }
    operand_release(&logits);
    operand_release(&classes);
    operand_release(&gradient);
    operand_release(&losses);
}

/* Logits that exp() of a float cannot hold. */
KERNEL_TEST(softmax_loss_of_large_logits)
{
    struct operand logits = operand_create(COLUMNS);
    struct operand classes = classes_create(1);
    struct operand gradient = operand_create(COLUMNS);
    struct operand losses = operand_create(1);
    void *bytes;
    cr_assert_eq(syncedmem_mutable_cpu_data(logits.buffer, &bytes), SYNCEDMEM_OK);
    for (size_t j = 0; j < COLUMNS; j++)
        ((float *)bytes)[MARGIN + j] = j == 0 ? 1000.0F : 0.0F;
    cr_assert_eq(kernels_softmax_loss(bench->kernels, in(bench, &logits), in(bench, &classes),
                                      out(bench, &gradient), out(bench, &losses), 1, COLUMNS),
                 SYNCEDMEM_OK);
    expect_near(now(&losses)[0], 0, 0);
    for (size_t j = 0; j < COLUMNS; j++)
        expect_near(now(&gradient)[j], 0, j);
    operand_release(&logits);
    operand_release(&classes);
    operand_release(&gradient);
    operand_release(&losses);
}

KERNEL_TEST(argmax)
{
    struct operand logits = operand_create(ROWS * COLUMNS);
    struct operand classes = operand_create(ROWS);
    cr_assert_eq(
        kernels_argmax(bench->kernels, in(bench, &logits), out(bench, &classes), ROWS, COLUMNS),
        SYNCEDMEM_OK);
    for (size_t i = 0; i < ROWS; i++) {
        const uint32_t class = class_at(&classes, i);
        cr_assert(class < COLUMNS);
        for (size_t j = 0; j < COLUMNS; j++)
            cr_assert(was(&logits, i * COLUMNS + j) <= was(&logits, i * COLUMNS + class));
    }
    operand_release(&logits);
    operand_release(&classes);
}

/* ---- Learning ---- */

KERNEL_TEST(sgd)
{
    struct operand gradient = operand_create(MOST);
    struct operand velocity = operand_create(MOST);
    struct operand parameters = operand_create(MOST);
    cr_assert_eq(kernels_sgd(bench->kernels, in(bench, &gradient), out(bench, &velocity),
                             out(bench, &parameters), MOST, 0.25F, 0.75F),
                 SYNCEDMEM_OK);
    for (size_t i = 0; i < MOST; i++) {
        const double step = 0.75 * was(&velocity, i) - 0.25 * was(&gradient, i);
        expect_near(now(&velocity)[i], step, i);
        expect_near(now(&parameters)[i], was(&parameters, i) + step, i);
    }
    operand_release(&gradient);
    operand_release(&velocity);
    operand_release(&parameters);
}

/* ---- Wrong calls ---- */

KERNEL_TEST(null_address)
{
    const kernels_out nowhere = {0};
    cr_assert_eq(kernels_relu(bench->kernels, nowhere, 1), SYNCEDMEM_INVALID_ARGUMENT);
    cr_assert(strstr(kernels_last_error(), "relu"));
}

Test(kernels, need_a_stream_on_a_device_and_none_on_the_host)
{
    struct bench bench = bench_open("sim:0");
    syncedmem_place *sim;
    kernels_set *kernels;
    cr_assert_eq(syncedmem_device_find("sim:0", &sim), SYNCEDMEM_OK);
    cr_assert_eq(kernels_open(sim, NULL, &kernels), SYNCEDMEM_INVALID_ARGUMENT);
    cr_assert_eq(kernels, NULL);
    cr_assert_eq(kernels_open(syncedmem_host(), bench.stream, &kernels),
                 SYNCEDMEM_INVALID_ARGUMENT);
    cr_assert_eq(kernels, NULL);
    bench_close(&bench);
}

Test(kernels, close_takes_null)
{
    kernels_close(NULL);
}

/* A kernel that the library refuses: its own message comes through. */
Test(kernels, foreign_memory_is_refused_with_a_message)
{
    struct bench bench = bench_open("sim:0");
    float on_the_host = 1;
    const kernels_out out_of_place = {.address = &on_the_host};
    cr_assert_eq(kernels_relu(bench.kernels, out_of_place, 1), SYNCEDMEM_WRONG_MEMORY);
    cr_assert_str_eq(kernels_last_error(), syncedmem_last_error());
    bench_close(&bench);
}
