/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Traces of real processes (`aquifer switch --trace`; the format is in
 * switchd/trace.c) are given to a switch again: each frame that left then must
 * leave now, through the same port, in the same order, with the same bytes.
 * Made by tests/e2e/switch_atomics.c: forwarded, replaced by swordbox, replaced
 * with loss on both sides, and steered. traces/make.sh makes them anew.
 */
#include "tor_rig.h"

#include <stdio.h>
#include <unistd.h>

#include "base/json_out.h"

enum {
	LINE_MAX_BYTES = 2 * TOR_FRAME_MAX + 64,
	PORTS = 16,
	QUEUE = 4096,
	SLOT_SHIFT = 14, /* of a soft NIC's queue pair numbers */
};

struct left {
	unsigned port;
	size_t len_bytes;
	uint8_t *frame;
};

struct replay;

struct replay_port {
	struct replay *replay;
	unsigned id;
	struct tor_port *port;
};

struct replay {
	struct env env;
	uint64_t now_ns;
	struct rng rng;
	struct tor *tor;
	bool in_batch;
	struct replay_port ports[PORTS];
	struct left queue[QUEUE]; /* what left and was not compared yet */
	unsigned first, last;
	int result;	   /* of the last control call */
	unsigned compared; /* frames */
	FILE *nowhere;
	struct json_out json;
};

static uint64_t replay_now(struct env *env)
{
	return container_of(env, struct replay, env)->now_ns;
}

static void replay_random(struct env *env, void *buf, size_t len_bytes)
{
	rng_fill(&container_of(env, struct replay, env)->rng, buf, len_bytes);
}

static bool replay_tx(void *ctx, const uint8_t *frame, size_t len_bytes,
		      const void *hint)
{
	struct replay_port *p = ctx;
	struct replay *r = p->replay;
	struct left *l = &r->queue[r->last++ % QUEUE];

	assert_true(r->last - r->first <= QUEUE);
	*l = (struct left){p->id, len_bytes, malloc(len_bytes)};
	assert_non_null(l->frame);
	memcpy(l->frame, frame, len_bytes);
	return true;
}

static const struct env_ops replay_env_ops = {.now_ns = replay_now,
					      .random = replay_random};
static const struct tor_port_ops replay_port_ops = {.tx = replay_tx};

static size_t read_hex(const char *text, uint8_t *out, size_t max)
{
	size_t n = 0;

	for (; text[0] && text[0] != '\n' && text[0] != ' '; text += 2) {
		char pair[3] = {text[0], text[1]};

		assert_true(n < max);
		out[n++] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return n;
}

static void end_batch(struct replay *r)
{
	if (r->in_batch)
		tor_end(r->tor);
	r->in_batch = false;
}

static void add_port(struct replay *r, unsigned id, const char *name)
{
	struct tor_port_config cfg = {
		.name = name, .ops = &replay_port_ops, .ctx = &r->ports[id]};

	r->ports[id].replay = r;
	r->ports[id].id = id;
	assert_int_equal(tor_port_add(r->tor, &cfg, &r->ports[id].port), 0);
	assert_int_equal(tor_port_id(r->ports[id].port), id);
}

static void compare(struct replay *r, unsigned id, const char *hex)
{
	uint8_t frame[TOR_FRAME_MAX];
	size_t len = read_hex(hex, frame, sizeof(frame));
	struct left *l = &r->queue[r->first % QUEUE];

	assert_true(r->first != r->last); /* nothing left now */
	assert_int_equal(l->port, id);
	assert_int_equal(l->len_bytes, len);
	assert_memory_equal(l->frame, frame, len);
	free(l->frame);
	r->first++;
	r->compared++;
}

/* Lines that are about a port: "p ID ...". */
static void port_line(struct replay *r, const char *line)
{
	uint8_t bytes[TOR_FRAME_MAX];
	char *rest;
	unsigned id = (unsigned)strtoul(line + 2, &rest, 10);

	assert_true(id < PORTS);
	rest += *rest == ' ';
	if (line[0] == 'i') {
		size_t len = read_hex(rest, bytes, sizeof(bytes));

		tor_input(r->ports[id].port, bytes, len, NULL);
	} else if (line[0] == 'o') {
		compare(r, id, rest);
	} else if (line[0] == 'p') {
		end_batch(r);
		rest[strcspn(rest, "\n")] = '\0';
		add_port(r, id, rest);
	} else if (line[0] == 'd') {
		end_batch(r);
		tor_port_remove(r->ports[id].port);
	} else {
		assert_int_equal(read_hex(rest, bytes, 16), 16);
		assert_int_equal(
			tor_port_claim(r->ports[id].port, bytes,
				       (uint32_t)strtoul(rest + 33, NULL, 10)),
			0);
	}
}

static void one_line(struct replay *r, char *line)
{
	uint8_t ip[16];

	line[strcspn(line, "\n")] = '\0';
	switch (line[0]) {
	case 'g':
		assert_int_equal(tor_program_add_text(r->tor, line + 2), 0);
		return;
	case 'w':
		assert_int_equal(read_hex(line + 2, ip, 16), 16);
		assert_int_equal(tor_address_set(r->tor, ip), 0);
		return;
	case 'c':
		end_batch(r);
		r->result = tor_control(r->tor, line + 2, &r->json);
		return;
	case 'r':
		assert_int_equal(r->result, atoi(line + 2));
		return;
	case 'b':
	case 't':
		end_batch(r);
		r->now_ns = strtoull(line + 2, NULL, 10);
		r->in_batch = line[0] == 'b';
		if (r->in_batch)
			tor_begin(r->tor);
		else
			tor_tick(r->tor);
		return;
	default:
		port_line(r, line);
	}
}

/* At least so many frames left, and so many of them were changed. */
static void play(const char *name, unsigned at_least, unsigned rewritten)
{
	const char *source = getenv("AQ_SOURCE");
	char path[512], *line = malloc(LINE_MAX_BYTES);
	struct replay *r = calloc(1, sizeof(*r));
	struct tor_config cfg = {.slot_shift = SLOT_SHIFT};
	FILE *f;

	assert_true(line && r);
	snprintf(path, sizeof(path), "%s/tests/unit/traces/%s.trace",
		 source ? source : ".", name);
	f = fopen(path, "re");
	assert_non_null(f);
	r->nowhere = fopen("/dev/null", "we");
	assert_non_null(r->nowhere);
	json_out_init(&r->json, r->nowhere);
	json_out_object(&r->json, NULL);
	r->env.ops = &replay_env_ops;
	r->now_ns = 1;
	rng_init(&r->rng, 1);
	cfg.env = &r->env;
	assert_int_equal(tor_create(&cfg, &r->tor), 0);
	while (fgets(line, LINE_MAX_BYTES, f))
		one_line(r, line);
	end_batch(r);
	/* Nothing more leaves than did. */
	assert_int_equal(r->first, r->last);
	assert_true(r->compared >= at_least);
	assert_true(tor_counter(r->tor, TOR_C_rewritten) >= rewritten);
	tor_destroy(r->tor);
	fclose(f);
	fclose(r->nowhere);
	free(line);
	free(r);
}

static void forwarded(void **state)
{
	play("forward", 60, 0);
}

static void replaced(void **state)
{
	play("swordbox", 150, 100);
}

static void replaced_with_loss(void **state)
{
	play("swordbox_loss", 150, 100);
}

static void steered(void **state)
{
	/* More than the answers to 36 appends, which say what is committed. */
	play("steer", 100, 50);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forwarded),
		cmocka_unit_test(replaced),
		cmocka_unit_test(replaced_with_loss),
		cmocka_unit_test(steered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
