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

#include "edm_workload.h"
#include "error.h"

enum {
	FIELDS_MIN = 5,
	FIELDS_MAX = 6,
	BYTES_MAX = 16 << 20,
	ROWS_FIRST = 1024,
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
	if (number(field[3], BYTES_MAX, &bytes) || bytes < 1 ||
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

static int rows_read(FILE *f, const char *path, uint32_t nodes,
		     struct edm_arrival **rows, uint64_t *count)
{
	char line[256];
	uint64_t size = 0, number_of_line = 0;
	double at_s = 0;

	while (fgets(line, sizeof(line), f)) {
		const char *why;

		number_of_line++;
		if (!strchr(line, '\n') && !feof(f))
			return error_set(-EINVAL, "%s:%llu: line too long",
					 path,
					 (unsigned long long)number_of_line);
		line[strcspn(line, "\r\n")] = 0;
		if (!*line || *line == '#')
			continue;
		if (*count == size) {
			struct edm_arrival *more;

			size = size ? 2 * size : ROWS_FIRST;
			more = realloc(*rows, size * sizeof(**rows));
			if (!more)
				return -ENOMEM;
			*rows = more;
		}
		why = line_parse(line, nodes, at_s, &(*rows)[*count], &at_s);
		if (why)
			return error_set(-EINVAL, "%s:%llu: %s", path,
					 (unsigned long long)number_of_line,
					 why);
		++*count;
	}
	if (ferror(f))
		return error_set(-EIO, "%s: cannot be read", path);
	if (!*count)
		return error_set(-EINVAL, "%s: no message in it", path);
	return 0;
}

int edm_trace_read(const char *path, uint32_t nodes, struct edm_arrival **out,
		   uint64_t *count)
{
	struct edm_arrival *rows = NULL;
	uint64_t n = 0;
	FILE *f = fopen(path, "re");
	int rc;

	if (!f)
		return error_set(-errno, "%s: %s", path, strerror(errno));
	rc = rows_read(f, path, nodes, &rows, &n);
	fclose(f);
	if (rc) {
		free(rows);
		return rc;
	}
	*out = rows;
	*count = n;
	return 0;
}
