/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A strict reader of JSON: what RFC 8259 does not allow is refused, and also what the library has
 * no reason to write: bytes beyond ASCII and a name twice in one object.
 *
 * Uses nothing of Criterion.
 */
#ifndef SYNCEDMEM_TESTS_UNIT_JSON_H
#define SYNCEDMEM_TESTS_UNIT_JSON_H

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum json_type { JSON_NULL, JSON_BOOLEAN, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_type type;
    char *name;         /* of a member of an object, else NULL */
    char *text;         /* a string; a number as it is written */
    double number;      /* also 1 for true */
    struct json *first; /* of the elements or members */
    struct json *next;
};

static void json_free(struct json *value)
{
    while (value != NULL) {
        struct json *next = value->next;
        json_free(value->first);
        free(value->name);
        free(value->text);
        free(value);
        value = next;
    }
}

static void json_skip_space(const char **at)
{
    *at += strspn(*at, " \t\r\n");
}

static bool json_skip(const char **at, const char *word)
{
    const size_t length = strlen(word);
    if (strncmp(*at, word, length) != 0) {
        return false;
    }
    *at += length;
    return true;
}

/* ---- Strings ---- */

static bool json_read_unicode(const char **at, char *out_byte)
{
    char digits[5] = "";
    for (int i = 0; i < 4; i++) {
        if (!isxdigit((unsigned char)(*at)[i])) {
            return false;
        }
        digits[i] = (*at)[i];
    }
    const unsigned long code = strtoul(digits, NULL, 16);
    *out_byte = (char)code;
    *at += 4;
    return code > 0 && code < 256; /* enough for what is read here */
}

static bool json_read_escape(const char **at, char *out_byte)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char letter = *(*at)++;
    if (letter == 'u') {
        return json_read_unicode(at, out_byte);
    }
    const char *found = letter != '\0' ? strchr(from, letter) : NULL;
    *out_byte = found != NULL ? to[found - from] : '\0';
    return found != NULL;
}

/* Enough for what it stands for. */
static size_t json_string_room(const char *at)
{
    const char *start = at;
    while (*at != '\0' && *at != '"') {
        at += *at == '\\' && at[1] != '\0' ? 2 : 1;
    }
    return (size_t)(at - start) + 1;
}

/* NULL when it is malformed. */
static char *json_read_string(const char **at)
{
    if (!json_skip(at, "\"")) {
        return NULL;
    }
    char *text = malloc(json_string_room(*at));
    size_t length = 0;
    while (text != NULL && **at != '"') {
        const char byte = *(*at)++;
        text[length] = byte;
        if (byte < ' ' || byte > '~' || (byte == '\\' && !json_read_escape(at, text + length))) {
            free(text);
            return NULL;
        }
        length++;
    }
    if (text != NULL) {
        text[length] = '\0';
        (*at)++;
    }
    return text;
}

/* ---- Numbers ---- */

static bool json_skip_digits(const char **at)
{
    const size_t count = strspn(*at, "0123456789");
    *at += count;
    return count > 0;
}

static bool json_skip_number(const char **at)
{
    json_skip(at, "-");
    if (!json_skip(at, "0") && !json_skip_digits(at)) {
        return false;
    }
    if (json_skip(at, ".") && !json_skip_digits(at)) {
        return false;
    }
    if (json_skip(at, "e") || json_skip(at, "E")) {
        if (!json_skip(at, "+")) {
            json_skip(at, "-");
        }
        return json_skip_digits(at);
    }
    return true;
}

static bool json_read_number(const char **at, struct json *value)
{
    const char *start = *at;
    if (!json_skip_number(at)) {
        return false;
    }
    value->type = JSON_NUMBER;
    value->text = strndup(start, (size_t)(*at - start));
    value->number = strtod(start, NULL);
    return value->text != NULL;
}

/* ---- Values ---- */

static struct json *json_read_value(const char **at);

static struct json *json_member(const struct json *object, const char *name)
{
    struct json *member = object != NULL ? object->first : NULL;
    while (member != NULL && (member->name == NULL || strcmp(member->name, name) != 0)) {
        member = member->next;
    }
    return member;
}

/* An element of an array, or a member of an object. */
static struct json *json_read_part(const char **at, const struct json *whole)
{
    char *name = NULL;
    json_skip_space(at);
    if (whole->type == JSON_OBJECT) {
        name = json_read_string(at);
        json_skip_space(at);
        if (name == NULL || json_member(whole, name) != NULL || !json_skip(at, ":")) {
            free(name);
            return NULL;
        }
    }
    struct json *part = json_read_value(at);
    if (part == NULL) {
        free(name);
        return NULL;
    }
    part->name = name;
    json_skip_space(at);
    return part;
}

static bool json_read_parts(const char **at, struct json *whole, const char *end)
{
    struct json **last = &whole->first;
    json_skip_space(at);
    if (json_skip(at, end)) {
        return true;
    }
    do {
        *last = json_read_part(at, whole);
        if (*last == NULL) {
            return false;
        }
        last = &(*last)->next;
    } while (json_skip(at, ","));
    return json_skip(at, end);
}

static bool json_read_into(const char **at, struct json *value)
{
    if (json_skip(at, "null")) {
        return true;
    }
    if (json_skip(at, "true") || json_skip(at, "false")) {
        value->type = JSON_BOOLEAN;
        value->number = (*at)[-2] == 'u';
        return true;
    }
    if (json_skip(at, "[")) {
        value->type = JSON_ARRAY;
        return json_read_parts(at, value, "]");
    }
    if (json_skip(at, "{")) {
        value->type = JSON_OBJECT;
        return json_read_parts(at, value, "}");
    }
    if (**at == '"') {
        value->type = JSON_STRING;
        value->text = json_read_string(at);
        return value->text != NULL;
    }
    return json_read_number(at, value);
}

static struct json *json_read_value(const char **at)
{
    struct json *value = calloc(1, sizeof *value);
    json_skip_space(at);
    if (value != NULL && !json_read_into(at, value)) {
        json_free(value);
        return NULL;
    }
    return value;
}

/* The one value that the text is; NULL when it is malformed. Freed by json_free(). */
static struct json *json_read(const char *text)
{
    struct json *value = json_read_value(&text);
    if (value == NULL) {
        return NULL;
    }
    json_skip_space(&text);
    if (*text != '\0') {
        json_free(value);
        return NULL;
    }
    return value;
}

/* ---- Looking ---- */

/* "" where there is no such text. */
static const char *json_text(const struct json *object, const char *name)
{
    const struct json *member = json_member(object, name);
    return member != NULL && member->type == JSON_STRING ? member->text : "";
}

/* -1 where there is no such number. */
static double json_number(const struct json *object, const char *name)
{
    const struct json *member = json_member(object, name);
    return member != NULL && member->type == JSON_NUMBER ? member->number : -1;
}

#endif
