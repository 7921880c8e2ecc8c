/* SPDX-License-Identifier: Apache-2.0 */
/* Tells what went wrong, in words or as JSON. */
#include "complaint.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "json_out.h"
#include "log.h"

enum {
	COMPLAINTS_MAX = 8,
	TEXT_BYTES = 1024,
};

/* Of the whole process, as the exit code is. */
static struct {
	bool is_json;
	unsigned count;
	struct {
		char text[TEXT_BYTES];
		int err; /* 0: not known */
	} kept[COMPLAINTS_MAX];
} complaints;

void complaint_set_json(bool as_json)
{
	const char *log_json = secure_getenv("AQUIFER_LOG_JSON");

	complaints.is_json = as_json;
	/* Who reads objects from stderr cannot do with lines of words. */
	log_setup(log_level_env(),
		  as_json || (log_json && strcmp(log_json, "1") == 0));
}

bool complaint_is_json(void)
{
	return complaints.is_json;
}

void complain(int err, const char *fmt, ...)
{
	char text[TEXT_BYTES];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!complaints.is_json) {
		(void)fprintf(stderr, "aquifer: %s\n", text);
	} else if (complaints.count < COMPLAINTS_MAX) {
		/* Of more than there is room for, the first ones matter. */
		memcpy(complaints.kept[complaints.count].text, text,
		       sizeof(text));
		complaints.kept[complaints.count++].err = err;
	}
}

/* Splits "what is wrong; what to do about it". */
static void put_text(struct json_out *j, const char *key, const char *text,
		     int err)
{
	const char *hint = strstr(text, "; ");
	int len = hint ? (int)(hint - text) : (int)strlen(text);

	json_out_printf(j, key, "%.*s", len, text);
	hint = hint ? hint + 2 : err ? error_advice(err) : "";
	if (hint[0])
		json_out_string(j, "hint", hint);
	if (err && error_name(err))
		json_out_string(j, "errno", error_name(err));
}

void complaint_flush(int exit_code)
{
	struct json_out j;

	if (complaints.count == 0)
		return;
	json_out_init(&j, stderr);
	json_out_object(&j, NULL);
	put_text(&j, exit_code ? "error" : "warning", complaints.kept[0].text,
		 complaints.kept[0].err);
	json_out_i64(&j, "code", exit_code);
	if (complaints.count > 1)
		json_out_array(&j, "also");
	for (unsigned i = 1; i < complaints.count; i++)
		json_out_string(&j, NULL, complaints.kept[i].text);
	if (complaints.count > 1)
		json_out_close(&j);
	json_out_close(&j);
	(void)!json_out_end(&j); /* where would we report it? */
	complaints.count = 0;
}
