/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a trace of messages, one per line: id,src,dst,bytes,start_s[,R|W], the
 * format of the Shoal simulator with an operation column. Without one, a line
 * is a write. Lines that are empty or begin with '#' are skipped.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "edm_workload.h"

enum {
	FIELDS_MIN = 5,
	FIELDS_MAX = 6,
	ROWS_FIRST = 1024,
	ROWS_MAX = 100 * 1000 * 1000, /* 2.4 GB */
	LINE_MAX_BYTES = 256,
};

static int number(const char *text, double max, double *out)
{
	char *end;

	errno = 0;
	*out = strtod(text, &end);
	while (*end == ' ')
		end++;
	if (end == text || *end || errno || !(*out >= 0) || *out > max)
		return -EINVAL;
	return 0;
}

static unsigned split(char *line, char **field)
{
	unsigned n = 0;

	for (char *p = line; p; n++) {
		char *comma = strchr(p, ',');

		if (n < FIELDS_MAX)
			field[n] = p;
		if (comma)
			*comma++ = 0;
		p = comma;
	}
	return n;
}

static int op_parse(const char *text, enum edm_op *op)
{
	while (*text == ' ')
		text++;
	if (!strcmp(text, "W") || !strcmp(text, "w"))
		*op = EDM_WRITE;
	else if (!strcmp(text, "R") || !strcmp(text, "r"))
		*op = EDM_READ;
	else
		return -EINVAL;
	return 0;
}

/* NULL, or what is wrong with the line. */
static const char *line_parse(char *line, uint32_t nodes, double last_s,
			      struct edm_arrival *a, double *at_s)
{
	char *field[FIELDS_MAX];
	double id, src, dst, bytes;
	unsigned n = split(line, field);

	if (n < FIELDS_MIN || n > FIELDS_MAX)
		return "expected id,src,dst,bytes,start_s[,R|W]";
	if (number(field[0], 1e18, &id))
		return "the id is no number";
	if (number(field[1], nodes - 1, &src) || src != (uint32_t)src)
		return "the source is no node of this cluster";
	if (number(field[2], nodes - 1, &dst) || dst != (uint32_t)dst)
		return "the destination is no node of this cluster";
	if (src == dst)
		return "source and destination are the same";
	if (number(field[3], EDM_MESSAGE_MAX, &bytes) || bytes < 1 ||
	    bytes != (uint32_t)bytes)
		return "the size is not in 1 byte..16 MB";
	if (number(field[4], 1e5, at_s))
		return "the start is no time in seconds";
	if (*at_s < last_s)
		return "time goes backwards";
	*a = (struct edm_arrival){
		.at_ps = (uint64_t)(*at_s * 1e12 + 0.5),
		.bytes = (uint32_t)bytes,
		.src = (uint16_t)src,
		.dst = (uint16_t)dst,
	};
	if (n == FIELDS_MAX && op_parse(field[5], &a->op))
		return "the operation is neither R nor W";
	return NULL;
}

/* One line without its end, or why there is none; NULL at the end of the file.
 * Not fgets: a NUL would hide what follows it. */
static const char *line_read(FILE *f, char line[LINE_MAX_BYTES], bool *more)
{
	size_t n = 0;
	int c = getc(f);

	*more = c != EOF;
	for (; c != EOF && c != '\n'; c = getc(f)) {
		if (!c)
			return "a NUL in the line";
		if (n == LINE_MAX_BYTES - 1)
			return "line too long";
		line[n++] = (char)c;
	}
	if (n && line[n - 1] == '\r')
		n--;
	line[n] = 0;
	return NULL;
}

static int rows_add(struct edm_arrival **rows, uint64_t count, uint64_t *size,
		    const struct edm_arrival *a)
{
	struct edm_arrival *more;

	if (count == *size) {
		*size = *size ? 2 * *size : ROWS_FIRST;
		more = realloc(*rows, *size * sizeof(**rows));
		if (!more)
			return -ENOMEM;
		*rows = more;
	}
	(*rows)[count] = *a;
	return 0;
}

static int rows_read(FILE *f, const char *name, uint32_t nodes,
		     struct edm_arrival **rows, uint64_t *count)
{
	char line[LINE_MAX_BYTES];
	uint64_t size = 0, number_of_line = 0;
	struct edm_arrival a;
	double at_s = 0;
	bool more;
	int rc = 0;

	while (!rc) {
		const char *why = line_read(f, line, &more);

		if (!more)
			break;
		number_of_line++;
		if (!why && (!*line || *line == '#'))
			continue;
		if (!why)
			why = line_parse(line, nodes, at_s, &a, &at_s);
		if (why)
			return error_set(-EINVAL, "%s:%llu: %s", name,
					 (unsigned long long)number_of_line,
					 why);
		rc = *count < ROWS_MAX
			     ? rows_add(rows, *count, &size, &a)
			     : error_set(-E2BIG,
					 "%s:%llu: more than %d "
					 "messages",
					 name,
					 (unsigned long long)number_of_line,
					 ROWS_MAX);
		++*count;
	}
	if (!rc && ferror(f))
		return error_set(-EIO, "%s: cannot be read", name);
	if (!rc && !*count)
		return error_set(-EINVAL, "%s: no message in it", name);
	return rc;
}

int edm_trace_parse(FILE *f, const char *name, uint32_t nodes,
		    struct edm_arrival **out, uint64_t *count)
{
	struct edm_arrival *rows = NULL;
	uint64_t n = 0;
	int rc = rows_read(f, name, nodes, &rows, &n);

	if (rc) {
		free(rows);
		return rc;
	}
	*out = rows;
	*count = n;
	return 0;
}

int edm_trace_read(const char *path, uint32_t nodes, struct edm_arrival **out,
		   uint64_t *count)
{
	FILE *f = fopen(path, "re");
	int rc;

	if (!f)
		return error_set(-errno, "%s: %s", path, strerror(errno));
	rc = edm_trace_parse(f, path, nodes, out, count);
	(void)fclose(f); /* only read from */
	return rc;
}
