/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A trace: what a switch was given, in order and with its times, and what came
 * out. A switch without threads and with a clock from outside does the same
 * again when it is given the same, so a trace is a test (test_tor_replay.c).
 * One line each:
 *
 *   g TEXT          a program was added
 *   p ID NAME       a port came up          d ID      and went down
 *   a ID IP SLOT    it claims an address (32 hex digits)
 *   b NS            a batch at this time    t NS      timers at this time
 *   i ID FRAME      a frame came in         o ID FRAME  and one left
 *   c TEXT          a control call          r ERR     and its result
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "switch/tor_program.h"
#include "switchd_priv.h"

struct trace {
	FILE *file;
	const struct tor *tor;
	char turn; /* to be written before anything else; 0: it was */
};

int trace_open(const char *path, struct trace **out)
{
	struct trace *t = calloc(1, sizeof(*t));
	int err;

	if (!t)
		return -ENOMEM;
	t->file = fopen(path, "we");
	if (!t->file) {
		err = -errno;
		free(t);
		return error_set(err, "%s: %s", path, strerror(-err));
	}
	*out = t;
	return 0;
}

int trace_close(struct trace *t)
{
	bool bad;

	if (!t)
		return 0;
	bad = ferror(t->file);
	bad |= fclose(t->file) != 0;
	free(t);
	return bad ? error_set(-EIO, "the trace could not be written") : 0;
}

void trace_turn(struct trace *t, const struct tor *tor, char kind)
{
	if (!t)
		return;
	t->tor = tor;
	t->turn = kind;
}

static void begin(struct trace *t)
{
	if (t->turn)
		fprintf(t->file, "%c %" PRIu64 "\n", t->turn,
			tor_now_ns(t->tor));
	t->turn = 0;
}

void trace_tick(struct trace *t)
{
	if (!t)
		return;
	begin(t);
}

void trace_program(struct trace *t, const char *text)
{
	if (t)
		fprintf(t->file, "g %s\n", text);
}

void trace_port(struct trace *t, const struct tor_port *port, bool up)
{
	if (!t)
		return;
	if (up)
		fprintf(t->file, "p %u %s\n", tor_port_id(port),
			tor_port_name(port));
	else
		fprintf(t->file, "d %u\n", tor_port_id(port));
}

static void put_hex(FILE *f, const uint8_t *bytes, size_t count)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < count; i++) {
		putc_unlocked(digits[bytes[i] >> 4], f);
		putc_unlocked(digits[bytes[i] & 15], f);
	}
}

void trace_address(struct trace *t, const uint8_t ip[16])
{
	if (!t)
		return;
	fputs("w ", t->file);
	put_hex(t->file, ip, 16);
	putc_unlocked('\n', t->file);
}

void trace_claim(struct trace *t, const struct tor_port *port,
		 const uint8_t ip[16], uint32_t slot)
{
	if (!t)
		return;
	fprintf(t->file, "a %u ", tor_port_id(port));
	put_hex(t->file, ip, 16);
	fprintf(t->file, " %u\n", slot);
}

static void put_frame(struct trace *t, char kind, const struct tor_port *port,
		      const uint8_t *frame, size_t len_bytes)
{
	begin(t);
	fprintf(t->file, "%c %u ", kind, tor_port_id(port));
	put_hex(t->file, frame, len_bytes);
	putc_unlocked('\n', t->file);
}

void trace_in(struct trace *t, const struct tor_port *port,
	      const uint8_t *frame, size_t len_bytes)
{
	if (UNLIKELY(t != NULL))
		put_frame(t, 'i', port, frame, len_bytes);
}

void trace_out(struct trace *t, const struct tor_port *port,
	       const uint8_t *frame, size_t len_bytes)
{
	if (UNLIKELY(t != NULL))
		put_frame(t, 'o', port, frame, len_bytes);
}

void trace_tell(struct trace *t, const char *text)
{
	if (t)
		fprintf(t->file, "c %s\n", text);
}

void trace_result(struct trace *t, int err)
{
	if (t)
		fprintf(t->file, "r %d\n", err);
}
