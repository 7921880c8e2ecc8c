/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a JSON tree for programs or for people. */
#include "cli_report.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "cli.h"

void cli_report_set(json_t *obj, const char *key, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	/* Out of memory leaves the key away; cli_report_print notices. */
	(void)json_object_set_new(obj, key, json_vsprintf(fmt, ap));
	va_end(ap);
}

/* Whether a number of that name is one of bytes. */
static bool is_size(const char *key)
{
	size_t len = strlen(key);

	return strcmp(key, "size") == 0 || strcmp(key, "stripe") == 0 ||
	       strcmp(key, "used") == 0 || strcmp(key, "free") == 0 ||
	       (len > 6 && strcmp(key + len - 6, "_bytes") == 0);
}

static void print_scalar(const char *key, json_t *v)
{
	switch (json_typeof(v)) {
	case JSON_STRING:
		fputs(json_string_value(v), stdout);
		return;
	case JSON_INTEGER:
		if (is_size(key) && json_integer_value(v) >= 1024)
			fputs(SIZE_TEXT((uint64_t)json_integer_value(v)),
			      stdout);
		else
			printf("%" JSON_INTEGER_FORMAT, json_integer_value(v));
		return;
	case JSON_REAL:
		printf("%g", json_real_value(v));
		return;
	case JSON_TRUE:
		fputs("yes", stdout);
		return;
	case JSON_FALSE:
		fputs("no", stdout);
		return;
	case JSON_NULL:
	case JSON_OBJECT:
	case JSON_ARRAY:
		fputs("-", stdout);
		return;
	}
}

static bool is_scalar(json_t *v)
{
	return !json_is_object(v) && !json_is_array(v);
}

/* An object in one line: its values, in columns. */
static void print_inline(json_t *obj)
{
	size_t left = json_object_size(obj);
	const char *key;
	json_t *v;

	json_object_foreach(obj, key, v)
	{
		left--;
		if (left && json_is_string(v)) {
			printf("%-22s ", json_string_value(v));
		} else {
			print_scalar(key, v);
			if (left)
				putchar(' ');
		}
	}
}

static void print_object(json_t *obj, int indent);

static void print_array(json_t *array, int indent)
{
	size_t i;
	json_t *v;

	json_array_foreach(array, i, v)
	{
		if (i)
			printf("\n%*s", indent, "");
		if (is_scalar(v))
			print_scalar("", v);
		else
			print_inline(v);
	}
	if (json_array_size(array) == 0)
		fputs("none", stdout);
	fputc('\n', stdout);
}

enum {
	KEY_COLUMNS = 30
};

static void print_object(json_t *obj, int indent)
{
	const char *key;
	json_t *v;

	json_object_foreach(obj, key, v)
	{
		if (json_is_object(v)) {
			printf("%*s%s:\n", indent, "", key);
			print_object(v, indent + 2);
			continue;
		}
		printf("%*s%-*s ", indent, "", KEY_COLUMNS - indent, key);
		if (json_is_array(v)) {
			print_array(v, KEY_COLUMNS + 1);
			continue;
		}
		print_scalar(key, v);
		fputc('\n', stdout);
	}
}

int cli_report_print(json_t *tree, bool as_json)
{
	int err = 0;

	if (!tree)
		return error_set(-ENOMEM, "no memory for the output");
	if (!as_json)
		print_object(tree, 0);
	else if (json_dumpf(tree, stdout, JSON_INDENT(2)) == 0)
		fputc('\n', stdout);
	else if (!ferror(stdout))
		err = error_set(-ENOMEM, "no memory for the output");
	json_decref(tree);
	return err ? err : cli_output_check();
}
