/* SPDX-License-Identifier: BSD-2-Clause */
#include "model.h"

static void allow(struct model_byte *byte, uint8_t value)
{
    byte->may[value / 64] |= (uint64_t)1 << value % 64;
}

static bool may_be(const struct model_byte *byte, uint8_t value)
{
    return (byte->may[value / 64] >> value % 64 & 1) != 0;
}

void model_set(struct model_byte *byte, uint8_t value)
{
    *byte = (struct model_byte){.latest = value};
    allow(byte, value);
}

void model_bring(struct model_byte *byte)
{
    byte->fragile = true;
}

void model_add(struct model_byte *byte, uint8_t value)
{
    byte->latest = value;
    byte->unsure = false;
    allow(byte, value);
}

void model_blur(struct model_byte *byte, uint8_t value)
{
    allow(byte, value);
    byte->unsure = true;
}

void model_copy(struct model_byte *to, const struct model_byte *from)
{
    *to = *from;
    if (!from->unsure) {
        model_set(to, from->latest);
    }
}

void model_blur_copy(struct model_byte *to, const struct model_byte *from)
{
    for (int i = 0; i < 4; i++) {
        to->may[i] |= from->may[i];
    }
    to->unsure = true;
}

void model_report(struct model_byte *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct model_byte only;
        model_set(&only, bytes[i].latest);
        bytes[i].unsure = bytes[i].unsure || bytes[i].fragile;
        for (int part = 0; part < 4; part++) {
            bytes[i].unsure = bytes[i].unsure || bytes[i].may[part] != only.may[part];
        }
    }
}

void model_settle(struct model_byte *byte)
{
    if (!byte->unsure) {
        model_set(byte, byte->latest);
    }
}

bool model_read(struct model_byte *byte, uint8_t value)
{
    const bool good = byte->unsure ? may_be(byte, value) : byte->latest == value;
    model_set(byte, value);
    return good;
}
