/* SPDX-License-Identifier: Apache-2.0 */
/* The audit log: what is written, what is not, and that nobody can fill it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* cmocka wants the four above. */
#include <cmocka.h>

#include "base/log.h"
#include "control/ctl_audit.h"

struct fixture {
	char path[64];
	struct ctl_audit *audit;
};

static void start(struct fixture *f, bool json)
{
	int fd;

	snprintf(f->path, sizeof(f->path), "/tmp/aquifer-audit.XXXXXX");
	fd = mkstemp(f->path);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(ctl_audit_open(f->path, json, &f->audit), 0);
}

/* What was written; f ends with it. */
static char *stop(struct fixture *f)
{
	static char text[65536];
	FILE *file = fopen(f->path, "r");
	size_t n = fread(text, 1, sizeof(text) - 1, file);

	text[n] = 0;
	fclose(file);
	ctl_audit_close(f->audit);
	assert_int_equal(unlink(f->path), 0);
	return text;
}

static void note(struct fixture *f, enum ctl_method method, const char *path,
		 unsigned status, uint64_t now_ns)
{
	struct ctl_request q = {.method = method,
				.path = path,
				.token = "secret",
				.peer = "10.0.0.9:1234"};
	struct ctl_audit_event e = {.who = "alpha", .name = "cache"};

	ctl_audit_note(f->audit, &q, &e, status, now_ns);
}

static unsigned lines(const char *text)
{
	unsigned n = 0;

	while ((text = strchr(text, '\n'))) {
		text++;
		n++;
	}
	return n;
}

static void changes_and_refusals_are_written(void **state)
{
	struct fixture f;
	char *text;

	start(&f, false);
	note(&f, CTL_POST, "/v1/regions", 201, 1);
	note(&f, CTL_GET, "/v1/regions", 200, 1);    /* changes nothing */
	note(&f, CTL_POST, "/v1/regions", 409, 1);   /* nor does this */
	note(&f, CTL_GET, "/v1/tenants", 403, 1);    /* a refusal */
	note(&f, CTL_POST, "/v1/x\nforged", 201, 1); /* stays one line */
	text = stop(&f);
	assert_int_equal(lines(text), 3);
	assert_non_null(strstr(text, " done alpha from=10.0.0.9:1234 POST "
				     "/v1/regions name=cache status=201"));
	assert_non_null(strstr(text, " refused alpha "));
	assert_non_null(strstr(text, "/v1/x?forged"));
	assert_null(strstr(text, "secret"));
}

static void refusals_are_limited_and_counted(void **state)
{
	struct fixture f;
	char *text;

	start(&f, true);
	for (unsigned i = 0; i < 1000; i++)
		note(&f, CTL_POST, "/v1/regions", 401, 1);
	/* Changes are not. */
	for (unsigned i = 0; i < 20; i++)
		note(&f, CTL_POST, "/v1/regions", 201, 1);
	note(&f, CTL_POST, "/v1/regions", 401, 2 * LOG_LIMIT_WINDOW_NS);
	text = stop(&f);
	assert_int_equal(lines(text), LOG_LIMIT_BURST + 20 + 1);
	assert_non_null(strstr(text, "\"left_out\":995"));
	for (char *at = text; *at; at = strchr(at, '\n') + 1) {
		json_t *tree = json_loadb(at, strcspn(at, "\n"), 0, NULL);

		assert_true(json_is_object(tree));
		json_decref(tree);
	}
}

/* Nobody gets past the log by words that double in JSON. */
static void the_longest_line_has_room(void **state)
{
	char quotes[512];
	struct ctl_request q = {.method = CTL_DELETE,
				.path = quotes,
				.peer = quotes,
				.certificate = quotes};
	struct ctl_audit_event e = {.who = quotes, .name = quotes};
	struct fixture f;
	json_t *tree;

	memset(quotes, '"', sizeof(quotes) - 1);
	quotes[sizeof(quotes) - 1] = 0;
	start(&f, true);
	ctl_audit_note(f.audit, &q, &e, 401, 1);
	tree = json_loads(stop(&f), 0, NULL);
	assert_true(json_is_object(tree));
	json_decref(tree);
}

/* Lines of one transaction reach the file together, more of them than one write
 * has room for, and what should not be there is left out of the middle. */
static void several_are_written_together(void **state)
{
	enum {
		COUNT = 60
	};
	struct ctl_audit_entry entry[COUNT];
	struct ctl_request q = {.method = CTL_POST,
				.path = "/v1/\"quoted\\",
				.peer = "10.0.0.9:1234",
				.certificate = "CN=\"m0\""};
	struct fixture f;
	char *text;

	for (unsigned i = 0; i < COUNT; i++)
		entry[i] = (struct ctl_audit_entry){
			.request = &q,
			.event = {.who = "alpha", .is_quiet = i == COUNT - 1},
			.status = i == 7 ? 409 : 201};
	start(&f, true);
	ctl_audit_note_all(f.audit, entry, COUNT, 1);
	text = stop(&f);
	assert_int_equal(lines(text), COUNT - 2);
	for (char *at = text; *at; at = strchr(at, '\n') + 1) {
		json_t *tree = json_loadb(at, strcspn(at, "\n"), 0, NULL);

		assert_string_equal(
			json_string_value(json_object_get(tree, "path")),
			q.path);
		assert_string_equal(
			json_string_value(json_object_get(tree, "certificate")),
			q.certificate);
		json_decref(tree);
	}
}

/* The last lines can be asked for, also after a restart; a file that is large
 * is followed by another one, and old ones go. */
static void its_own_file_turns_over(void **state)
{
	char path[80], text[200];
	struct fixture f;
	json_t *rows;

	start(&f, true);
	assert_int_equal(ctl_audit_keep(f.audit, true), 0);
	for (unsigned i = 0; i < 300; i++) {
		snprintf(text, sizeof(text), "/v1/regions/%u", i);
		note(&f, CTL_POST, text, 201, 1);
	}
	rows = ctl_audit_last(f.audit);
	assert_int_equal(json_array_size(rows), CTL_AUDIT_KEPT);
	assert_string_equal(
		json_string_value(json_object_get(
			json_array_get(rows, CTL_AUDIT_KEPT - 1), "path")),
		"/v1/regions/299");
	json_decref(rows);
	ctl_audit_close(f.audit);
	assert_int_equal(ctl_audit_open(f.path, true, &f.audit), 0);
	assert_int_equal(ctl_audit_keep(f.audit, true), 0);
	rows = ctl_audit_last(f.audit);
	assert_int_equal(json_array_size(rows), CTL_AUDIT_KEPT);
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(rows, 0), "path")),
			    "/v1/regions/44");
	json_decref(rows);
	/* Larger than it may be: the next line goes to another one. */
	for (unsigned i = 0; i <= CTL_AUDIT_FILES + 1; i++) {
		ctl_audit_close(f.audit);
		assert_int_equal(truncate(f.path, CTL_AUDIT_BYTES), 0);
		assert_int_equal(ctl_audit_open(f.path, true, &f.audit), 0);
		assert_int_equal(ctl_audit_keep(f.audit, true), 0);
		note(&f, CTL_POST, "/v1/last", 201, 1);
	}
	for (unsigned i = 1; i <= CTL_AUDIT_FILES; i++) {
		snprintf(path, sizeof(path), "%s.%u", f.path, i);
		assert_int_equal(unlink(path), 0);
	}
	snprintf(path, sizeof(path), "%s.%u", f.path, CTL_AUDIT_FILES + 1);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(lines(stop(&f)), 1);
}

static void only_files_are_appended_to(void **state)
{
	struct ctl_audit *a;

	assert_int_equal(ctl_audit_open("/nonexistent/x", false, &a), -ENOENT);
	assert_int_equal(ctl_audit_open("/tmp", false, &a), -EISDIR);
	assert_int_equal(ctl_audit_open("/dev/null", false, &a), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_and_refusals_are_written),
		cmocka_unit_test(refusals_are_limited_and_counted),
		cmocka_unit_test(the_longest_line_has_room),
		cmocka_unit_test(several_are_written_together),
		cmocka_unit_test(its_own_file_turns_over),
		cmocka_unit_test(only_files_are_appended_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
