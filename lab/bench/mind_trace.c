/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of a switch, as RDMA packets, and which of them follow from each
 * other (lines: switchd/trace.c). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mind_bench.h"
#include "wire/coherence_wire.h"
#include "wire/wire.h"

enum {
	PORTS = 64,
};

struct event {
	bool is_in;
	uint8_t opcode;
	uint32_t port;
	uint32_t turn; /* of the switch: a batch of frames, or its timers */
	uint32_t qpn, psn;
	uint64_t va;
};

struct mind_trace {
	struct event *event;
	size_t count, room;
};

/* ---- reading --------------------------------------------------------------
 */

static int digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
				      : -1;
}

static size_t read_hex(const char *text, uint8_t *out, size_t room)
{
	size_t n = 0;

	for (; n < room; n++, text += 2) {
		int high = digit(text[0]);
		int low = high < 0 ? -1 : digit(text[1]);

		if (low < 0)
			break;
		out[n] = (uint8_t)(high << 4 | low);
	}
	return n;
}

static int add(struct mind_trace *t, const struct event *e)
{
	if (t->count == t->room) {
		size_t room = t->room ? 2 * t->room : 1024;
		struct event *more = realloc(t->event, room * sizeof(*more));

		if (!more)
			return -ENOMEM;
		t->event = more;
		t->room = room;
	}
	t->event[t->count++] = *e;
	return 0;
}

static int take_line(struct mind_trace *t, const char *line, uint32_t *turn)
{
	uint8_t frame[WIRE_FRAME_MAX];
	struct wire_pkt w;
	struct event e;
	unsigned port;
	int at = 0;

	if (line[0] == 'b' || line[0] == 't')
		++*turn;
	if ((line[0] != 'i' && line[0] != 'o') ||
	    sscanf(line + 1, " %u %n", &port, &at) != 1 || !at || port >= PORTS)
		return 0;
	if (wire_parse(frame, read_hex(line + 1 + at, frame, sizeof(frame)),
		       &w) != WIRE_OK)
		return 0; /* not of RDMA */
	e = (struct event){.is_in = line[0] == 'i',
			   .opcode = w.opcode,
			   .port = port,
			   .turn = *turn,
			   .qpn = w.dest_qpn,
			   .psn = w.psn,
			   .va = w.va};
	return add(t, &e);
}

int mind_trace_read(const char *path, struct mind_trace **out)
{
	struct mind_trace *t = calloc(1, sizeof(*t));
	FILE *f = t ? fopen(path, "re") : NULL;
	size_t room = 0;
	char *line = NULL;
	uint32_t turn = 0;
	int err = f ? 0 : t ? -errno : -ENOMEM;

	while (!err && getline(&line, &room, f) > 0)
		err = take_line(t, line, &turn);
	free(line);
	if (f)
		(void)fclose(f); /* it was only read */
	if (err) {
		mind_trace_free(t);
		return err;
	}
	*out = t;
	return 0;
}

void mind_trace_free(struct mind_trace *t)
{
	if (t)
		free(t->event);
	free(t);
}

/* ---- gets and answers ------------------------------------------------------
 */

static bool is_get(const struct event *e, uint64_t va)
{
	return e->is_in && e->opcode == WIRE_RC_READ_REQ && e->va == va;
}

/* The last packet of the answer, if it has several. */
static bool ends_answer(const struct event *e)
{
	return !e->is_in && (e->opcode == WIRE_RC_READ_RESP_ONLY ||
			     e->opcode == WIRE_RC_READ_RESP_LAST);
}

/* Places of the get of the page by the nth machine that asks for it, and of its
 * answer; false: not there. A NIC that hears nothing for long repeats a get, so
 * machines are told apart by their ports. One machine asks for one page at a
 * time, so the next answer to its port is it. */
static bool find(const struct mind_trace *t, uint64_t va, unsigned nth,
		 size_t *get, size_t *answer)
{
	uint64_t ports = 0; /* that have asked */

	for (size_t i = 0; i < t->count; i++) {
		uint32_t port = t->event[i].port;

		if (!is_get(&t->event[i], va) || ports >> port & 1)
			continue;
		ports |= 1ull << port;
		if (nth-- > 0)
			continue;
		*get = i;
		for (size_t k = i + 1; k < t->count; k++)
			if (t->event[k].port == port &&
			    ends_answer(&t->event[k])) {
				*answer = k;
				return true;
			}
		return false;
	}
	return false;
}

unsigned mind_trace_hops(const struct mind_trace *t, uint64_t va, unsigned nth)
{
	unsigned sent[PORTS] = {0}; /* longest chain to a frame to the port */
	unsigned heard = 1;	    /* and to one that came in this turn */
	size_t get, answer;
	uint32_t turn;

	if (!find(t, va, nth, &get, &answer))
		return 0;
	turn = t->event[get].turn;
	for (size_t i = get + 1; i <= answer; i++) {
		const struct event *e = &t->event[i];

		if (e->turn != turn)
			heard = 0;
		turn = e->turn;
		if (e->is_in && sent[e->port] >= heard)
			heard = sent[e->port] ? sent[e->port] + 1 : 0;
		/* What goes out by itself follows from nothing here. */
		if (!e->is_in && heard && heard >= sent[e->port])
			sent[e->port] = heard + 1;
	}
	return sent[t->event[answer].port];
}

int mind_trace_miss(const struct mind_trace *t, uint64_t va)
{
	size_t get, answer;

	return find(t, va, 0, &get, &answer) ? (int)(answer - get + 1)
					     : -ENOENT;
}

int mind_trace_between(const struct mind_trace *t, uint64_t from_va,
		       uint64_t to_va)
{
	size_t get, answer, next, last;

	if (!find(t, from_va, 0, &get, &answer) ||
	    !find(t, to_va, 0, &next, &last) || next < answer)
		return -ENOENT;
	return (int)(next - answer - 1);
}

/* Whether it is the same packet once more: a lane has one get at a time. */
static bool is_repeated(const struct mind_trace *t, size_t i)
{
	const struct event *e = &t->event[i];

	while (i-- > 0) {
		const struct event *o = &t->event[i];

		if (o->is_in && o->port == e->port && o->qpn == e->qpn &&
		    o->opcode == e->opcode)
			return o->psn == e->psn;
	}
	return false;
}

int mind_trace_gets(const struct mind_trace *t, uint64_t va, uint64_t from_va,
		    uint64_t to_va)
{
	size_t begin, end, ignored;
	int n = 0;

	if (!find(t, from_va, 0, &begin, &ignored) ||
	    !find(t, to_va, 0, &end, &ignored) || end < begin)
		return -ENOENT;
	for (size_t i = begin; i < end; i++)
		n += is_get(&t->event[i], va) && !is_repeated(t, i);
	return n;
}
