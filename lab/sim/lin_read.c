/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a history from JSON lines; every mistake names its line. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <jansson.h>

#include "base/error.h"
#include "lin_file.h"

enum {
	ADD_AFTER = LIN_CALLS, /* faa that tells the value after */
	PROCESSES_FIRST = 64,
	RETIRED = -2,
	IDLE = -1,
};

struct process {
	int64_t op;	/* IDLE, RETIRED or the open one */
	uint32_t call;	/* ADD_AFTER is one, too */
	uint64_t delta; /* of ADD_AFTER */
	struct lin_value key;
};

struct lin_reader {
	struct lin_history *h;
	struct process *process;
	uint64_t processes;
	uint64_t line;
};

static const struct {
	const char *name;
	uint32_t call;
} calls[] = {
	{"read", LIN_READ},  {"get", LIN_READ},	     {"write", LIN_WRITE},
	{"put", LIN_WRITE},  {"cas", LIN_CAS},	     {"delete", LIN_DELETE},
	{"del", LIN_DELETE}, {"insert", LIN_INSERT}, {"update", LIN_UPDATE},
	{"faa", LIN_FAA},    {"add", ADD_AFTER},     {"incr", ADD_AFTER},
};

int lin_reader_create(struct lin_history *h, struct lin_reader **out)
{
	struct lin_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->h = h;
	*out = r;
	return 0;
}

void lin_reader_destroy(struct lin_reader *r)
{
	if (!r)
		return;
	free(r->process);
	free(r);
}

static int bad(const struct lin_reader *r, const char *what)
{
	return error_set(-EBADMSG, "line %" PRIu64 ": %s", r->line, what);
}

static int process_find(struct lin_reader *r, const json_t *line,
			struct process **out)
{
	const json_t *j = json_object_get(line, "process");
	uint64_t want = r->processes ? r->processes : PROCESSES_FIRST;
	struct process *more;
	json_int_t number;

	if (!json_is_integer(j))
		return bad(r, "\"process\" is missing or no integer");
	number = json_integer_value(j);
	if (number < 0 || number >= LIN_PROCESS_MAX)
		return bad(r, "\"process\" is out of range");
	if ((uint64_t)number >= r->processes) {
		while (want <= (uint64_t)number)
			want *= 2;
		more = realloc(r->process, want * sizeof(*more));
		if (!more)
			return -ENOMEM;
		for (uint64_t i = r->processes; i < want; i++)
			more[i] = (struct process){.op = IDLE};
		r->process = more;
		r->processes = want;
	}
	*out = &r->process[number];
	return 0;
}

/* Integers and null are themselves; everything else is compared as text. A
 * leading 1 keeps an array apart from a string that looks the same. */
static int value_of(struct lin_reader *r, const json_t *j,
		    struct lin_value *out)
{
	char *text, *marked;
	int err = -ENOMEM;

	if (!j || json_is_null(j)) {
		*out = lin_nil();
		return 0;
	}
	if (json_is_integer(j)) {
		*out = lin_int((uint64_t)json_integer_value(j));
		return 0;
	}
	if (json_is_string(j))
		return lin_bytes(r->h, json_string_value(j),
				 json_string_length(j), out);
	text = json_dumps(j, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
	marked = text ? malloc(strlen(text) + 2) : NULL;
	if (marked) {
		marked[0] = '\1';
		strcpy(marked + 1, text);
		err = lin_bytes(r->h, marked, strlen(marked), out);
	}
	free(marked);
	free(text);
	return err;
}

static int call_find(const struct lin_reader *r, const json_t *line,
		     uint32_t *out)
{
	const char *f = json_string_value(json_object_get(line, "f"));

	if (!f)
		return bad(r, "\"f\" is missing or no string");
	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		if (!strcmp(calls[i].name, f)) {
			*out = calls[i].call;
			return 0;
		}
	}
	return bad(r, "\"f\" is not a known operation");
}

static uint64_t time_of(const json_t *line)
{
	json_int_t t = json_integer_value(json_object_get(line, "time"));

	return t > 0 ? (uint64_t)t : 0;
}

static int take_invoke(struct lin_reader *r, struct process *p, uint32_t call,
		       uint32_t number, const json_t *line)
{
	const json_t *value = json_object_get(line, "value");
	struct lin_value a = lin_nil(), b = lin_nil();
	enum lin_call c = call == ADD_AFTER ? LIN_FAA : (enum lin_call)call;
	int err = 0;

	if (p->op == RETIRED)
		return bad(r, "the process has an operation of unknown end");
	if (p->op != IDLE)
		return bad(r, "the process has an operation open");
	if (c == LIN_FAA && !json_is_integer(value))
		return bad(r, "\"value\" must be an integer");
	if (c == LIN_CAS && json_array_size(value) != 2)
		return bad(r, "\"value\" must be [old, new]");
	if (c == LIN_CAS) {
		err = value_of(r, json_array_get(value, 0), &a);
		if (!err)
			err = value_of(r, json_array_get(value, 1), &b);
	} else if (c != LIN_READ && c != LIN_DELETE) {
		err = value_of(r, value, &a);
	}
	if (!err)
		err = value_of(r, json_object_get(line, "key"), &p->key);
	if (err)
		return err;
	p->op = lin_invoke(r->h, number, p->key, c, a, b, time_of(line));
	if (p->op < 0) {
		err = (int)p->op;
		p->op = IDLE;
		return err;
	}
	p->call = call;
	p->delta = a.bits;
	return 0;
}

/* What an ok line says: a value where the operation gives one, true or false
 * where it has a condition, else nothing. */
static int said_of(struct lin_reader *r, const struct process *p,
		   const json_t *value, enum lin_said *said,
		   struct lin_value *got)
{
	bool adds = p->call == LIN_FAA || p->call == ADD_AFTER;
	int err;

	*got = lin_nil();
	*said = LIN_SAID_NOTHING;
	if (p->call == LIN_READ) {
		*said = LIN_YES;
		return value_of(r, value, got);
	}
	if (adds && value && !json_is_null(value)) {
		if (!json_is_integer(value))
			return bad(r, "\"value\" must be an integer");
		err = value_of(r, value, got);
		*said = LIN_YES;
		if (p->call == ADD_AFTER)
			got->bits -= p->delta;
		return err;
	}
	if (p->call == LIN_WRITE || adds)
		return 0;
	if (json_is_false(value))
		*said = LIN_NO;
	else if (p->call != LIN_DELETE || json_is_true(value))
		*said = LIN_YES;
	return 0;
}

static int take_return(struct lin_reader *r, struct process *p, uint32_t call,
		       enum lin_type type, const json_t *line)
{
	const json_t *key = json_object_get(line, "key");
	struct lin_value got, k = p->key;
	enum lin_said said;
	int err;

	if (p->op < 0)
		return bad(r, "the process has no operation open");
	if (p->call != call)
		return bad(r, "\"f\" differs from the invocation's");
	err = key ? value_of(r, key, &k) : 0;
	if (!err && !lin_value_equal(k, p->key))
		return bad(r, "\"key\" differs from the invocation's");
	if (!err)
		err = said_of(r, p, json_object_get(line, "value"), &said,
			      &got);
	if (err)
		return err;
	lin_return(r->h, p->op, type, said, got, time_of(line));
	p->op = type == LIN_INFO ? RETIRED : IDLE;
	return 0;
}

static int take_line(struct lin_reader *r, const json_t *line)
{
	const char *type = json_string_value(json_object_get(line, "type"));
	struct process *p = NULL;
	uint32_t call = 0;
	int err;

	if (!json_is_object(line))
		return bad(r, "not an object");
	if (!type)
		return bad(r, "\"type\" is missing or no string");
	err = process_find(r, line, &p);
	if (!err)
		err = call_find(r, line, &call);
	if (err)
		return err;
	if (!strcmp(type, "invoke"))
		return take_invoke(r, p, call, (uint32_t)(p - r->process),
				   line);
	if (!strcmp(type, "ok"))
		return take_return(r, p, call, LIN_OK, line);
	if (!strcmp(type, "fail"))
		return take_return(r, p, call, LIN_FAIL, line);
	if (!strcmp(type, "info"))
		return take_return(r, p, call, LIN_INFO, line);
	return bad(r, "\"type\" is none of invoke, ok, fail, info");
}

int lin_reader_line(struct lin_reader *r, const char *line, size_t len_bytes)
{
	json_error_t e;
	json_t *j;
	int err;

	r->line++;
	while (len_bytes && strchr(" \t\r\n", line[len_bytes - 1]) &&
	       line[len_bytes - 1])
		len_bytes--;
	if (!len_bytes)
		return 0;
	if (len_bytes > LIN_LINE_MAX)
		return bad(r, "too long");
	j = json_loadb(line, len_bytes, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL,
		       &e);
	if (!j)
		return error_set(-EBADMSG, "line %" PRIu64 ": no JSON: %s",
				 r->line, e.text);
	err = take_line(r, j);
	json_decref(j);
	return err;
}

int lin_history_read(struct lin_history *h, FILE *in, const char *name)
{
	struct lin_reader *r = NULL;
	char *line = NULL;
	size_t room = 0;
	ssize_t n;
	int err = lin_reader_create(h, &r);

	while (!err && (n = getline(&line, &room, in)) >= 0)
		err = lin_reader_line(r, line, (size_t)n);
	if (!err && ferror(in))
		err = error_set(-EIO, "reading failed");
	if (err)
		error_prefix(err, "%s: ", name);
	free(line);
	lin_reader_destroy(r);
	return err;
}
