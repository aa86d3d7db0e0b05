/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader of JSON that the tests of the trace rely on. */
#include "json.h"
#include "support.h"

TestSuite(json, .timeout = 60);

static void check(const char *text, bool is_json)
{
    struct json *value = json_read(text);
    cr_assert_eq(value != NULL, is_json, "%s", text);
    json_free(value);
}

Test(json, accepts)
{
    static const char *const texts[] = {
        "[]",
        "{}",
        "0",
        "-0",
        "10",
        "1.5",
        "1e5",
        "-1.25E-3",
        "2e+1",
        "null",
        "true",
        "false",
        "\"\"",
        " [ 1 , 2 ]\n",
        "{\"a\":{\"b\":[null,true]},\"c\":\"d\"}",
        "[[],[[]],{}]",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\"",
        "\t{ \"a\" : 1 ,\r\n\"b\" : 2 }",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        check(texts[i], true);
    }
}

Test(json, refuses)
{
    static const char *const texts[] = {
        "",          " ",           "[",
        "]",         "[1,]",        "[,1]",
        "[1 2]",     "[1],",        "{",
        "{\"a\"}",   "{\"a\":}",    "{\"a\":1,}",
        "{a:1}",     "{\"a\" 1}",   "{\"a\":1,\"a\":2}",
        "{1:2}",     "{\"a\":1]",   "[1}",
        "01",        "+1",          "1.",
        ".5",        "1e",          "1e+",
        "-",         "0x1",         "NaN",
        "nul",       "True",        "'a'",
        "\"a",       "\"\\\"",      "\"\\x\"",
        "\"\\u12\"", "\"\\u12g4\"", "\"a\nb\"",
        "\"a\tb\"",  "\"\x7f\"",    "\"\xc3\xa4\"",
        "[] []",     "1 2",         "[1]x",
        "\"\\",      "\"\\u",       "/* */ 1",
        "[1]\f",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        check(texts[i], false);
    }
}

Test(json, reads)
{
    struct json *value = json_read("[{\"a\":\"x\\u0041\\n\",\"b\":-12.5,\"c\":true},{}]");
    cr_assert_not_null(value);
    const struct json *first = value->first;
    cr_assert_eq(value->type, JSON_ARRAY);
    cr_assert_str_eq(json_text(first, "a"), "xA\n");
    cr_assert_eq(json_number(first, "b"), -12.5);
    cr_assert_str_eq(json_text(first, "b"), "");
    cr_assert_eq(json_number(first, "a"), -1);
    cr_assert_eq(json_member(first, "c")->number, 1);
    cr_assert_null(json_member(first, "d"));
    cr_assert_eq(first->next->type, JSON_OBJECT);
    cr_assert_null(first->next->first);
    cr_assert_null(first->next->next);
    json_free(value);
}
