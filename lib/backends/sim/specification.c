/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>

#include "backends/sim/specification.h"

/* ---- Units ---- */

struct unit {
    const char *suffix;
    uint64_t factor;
};

static const struct unit plain_units[] = {{"", 1}, {NULL, 0}};
static const struct unit byte_units[] = {
    {"", 1}, {"k", 1 << 10}, {"m", 1 << 20}, {"g", 1 << 30}, {NULL, 0}};
static const struct unit time_units[] = {
    {"", 1}, {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {NULL, 0}};

/* ---- Settings ---- */

struct setting {
    const char *name;
    const struct unit *units;
    uint64_t minimum;
    uint64_t maximum;
    size_t offset; /* of an uint64_t in struct engine_settings, or DEVICES */
};

#define DEVICES ((size_t)-1)
#define SETTING(field) offsetof(struct engine_settings, field)

/* Half the address space of small pointers, so that both mappings of the memory fit. */
#define MEMORY_MAX (SIZE_MAX / 8)

static const struct setting settings[] = {
    {"devices", plain_units, 1, SIM_DEVICES_MAX, DEVICES},
    {"memory", byte_units, 4096, MEMORY_MAX, SETTING(memory)},
    {"latency", time_units, 0, UINT32_MAX, SETTING(latency_ns)},
    {"bandwidth", byte_units, 0, UINT64_MAX, SETTING(bandwidth)},
    {"launch", time_units, 0, UINT32_MAX, SETTING(launch_ns)},
    {"fail_alloc", plain_units, 0, UINT64_MAX, SETTING(fail[ENGINE_FAIL_ALLOC])},
    {"fail_copy", plain_units, 0, UINT64_MAX, SETTING(fail[ENGINE_FAIL_COPY])},
    {"fail_copy_late", plain_units, 0, UINT64_MAX, SETTING(fail[ENGINE_FAIL_COPY_LATE])},
    {"fail_pin", plain_units, 0, UINT64_MAX, SETTING(fail[ENGINE_FAIL_PIN])},
    {"fail_device", plain_units, 0, UINT64_MAX, SETTING(fail[ENGINE_FAIL_DEVICE])},
    {"seed", plain_units, 0, UINT64_MAX, SETTING(seed)},
};

struct sim_specification syncedmem_sim_default_specification(void)
{
    const uint64_t memory = sizeof(void *) > 4 ? (uint64_t)4 << 30 : (uint64_t)64 << 20;
    return (struct sim_specification){.devices = 1, .settings = {.memory = memory}};
}

/* ---- Parsing: a part of the text is a start and a length ---- */

struct part {
    const char *start;
    size_t length;
};

static bool part_equals(struct part part, const char *text)
{
    return strlen(text) == part.length && memcmp(part.start, text, part.length) == 0;
}

static const struct setting *find_setting(struct part name)
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (part_equals(name, settings[i].name))
            return &settings[i];
    return NULL;
}

/* Takes the digits off the front. False when there are none, or too many. */
static bool take_number(struct part *part, uint64_t *out_number)
{
    size_t digits = 0;
    uint64_t number = 0;
    for (; digits < part->length && part->start[digits] >= '0' && part->start[digits] <= '9';
         digits++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(part->start[digits] - '0'), &number))
            return false;
    part->start += digits;
    part->length -= digits;
    *out_number = number;
    return digits > 0;
}

static bool parse_value(struct part value, const struct setting *setting, uint64_t *out_number)
{
    uint64_t number;
    if (!take_number(&value, &number))
        return false;
    for (const struct unit *unit = setting->units; unit->suffix; unit++)
        if (part_equals(value, unit->suffix))
            return !__builtin_mul_overflow(number, unit->factor, out_number) &&
                   *out_number >= setting->minimum && *out_number <= setting->maximum;
    return false;
}

static void store(struct sim_specification *specification, const struct setting *setting,
                  uint64_t number)
{
    if (setting->offset == DEVICES)
        specification->devices = (size_t)number;
    else
        memcpy((char *)&specification->settings + setting->offset, &number, sizeof number);
}

static bool refuse_name(struct part item, char message[SIM_MESSAGE_SIZE])
{
    snprintf(message, SIM_MESSAGE_SIZE, "simulator: \"%.*s\" names no setting",
             item.length < 60 ? (int)item.length : 60, item.start);
    return false;
}

static bool refuse_value(struct part item, const struct setting *setting,
                         char message[SIM_MESSAGE_SIZE])
{
    snprintf(
        message, SIM_MESSAGE_SIZE,
        "simulator: \"%.*s\": %s takes a number from %llu to %llu, with its unit if it has one",
        item.length < 60 ? (int)item.length : 60, item.start, setting->name,
        (unsigned long long)setting->minimum, (unsigned long long)setting->maximum);
    return false;
}

static bool parse_item(struct part item, struct sim_specification *specification,
                       char message[SIM_MESSAGE_SIZE])
{
    const char *equals = memchr(item.start, '=', item.length);
    const size_t name_length = equals ? (size_t)(equals - item.start) : item.length;
    const struct setting *setting = find_setting((struct part){item.start, name_length});
    if (!setting)
        return refuse_name(item, message);
    uint64_t number;
    if (!equals ||
        !parse_value((struct part){equals + 1, item.length - name_length - 1}, setting, &number))
        return refuse_value(item, setting, message);
    store(specification, setting, number);
    return true;
}

bool syncedmem_sim_parse_specification(const char *text, struct sim_specification *specification,
                                       char message[SIM_MESSAGE_SIZE])
{
    while (*text) {
        const size_t length = strcspn(text, ",");
        if (!parse_item((struct part){text, length}, specification, message))
            return false;
        text += length;
        if (*text == ',' && *++text == '\0')
            return refuse_name((struct part){text, 0}, message);
    }
    return true;
}
