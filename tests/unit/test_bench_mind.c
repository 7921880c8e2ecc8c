/* SPDX-License-Identifier: Apache-2.0 */
/* What `bench mind` reads from a switch's trace: chains of frames, and nothing
 * from lines that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/mind_bench.h"
#include "wire/wire.h"

#define PAGE_VA 0x200000004000ull

enum {
	ASKER = 3,
	OWNER = 4,
	NODE = 5,
};

struct frame {
	char kind; /* i, o; b: a batch */
	unsigned port;
	uint8_t opcode;
	uint64_t va;
};

static void put(FILE *f, const struct frame *x)
{
	struct wire_pkt w = {.opcode = x->opcode,
			     .ttl = 64,
			     .src_port = 0xc000,
			     .pkey = 0xffff,
			     .va = x->va,
			     .dma_len = 4096};
	uint8_t frame[WIRE_FRAME_MAX], bytes[64] = {0};
	size_t len;

	if (x->kind == 'b') {
		(void)fprintf(f, "b 1000\n");
		return;
	}
	w.src_ip[10] = w.src_ip[11] = w.dst_ip[10] = w.dst_ip[11] = 0xff;
	w.src_ip[12] = w.dst_ip[12] = 127;
	if (x->opcode == WIRE_RC_READ_RESP_ONLY ||
	    x->opcode == WIRE_RC_WRITE_ONLY || x->opcode == WIRE_RC_SEND_ONLY) {
		w.payload = bytes;
		w.payload_len = sizeof(bytes);
	}
	len = wire_build(&w, frame);
	(void)fprintf(f, "%c %u ", x->kind, x->port);
	for (size_t i = 0; i < len; i++)
		(void)fprintf(f, "%02x", frame[i]);
	(void)fprintf(f, "\n");
}

static struct mind_trace *trace_of(const struct frame *x, size_t count,
				   const char *more)
{
	char path[] = "/tmp/test_bench_mind-XXXXXX";
	struct mind_trace *t = NULL;
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");

	assert_non_null(f);
	for (size_t i = 0; i < count; i++)
		put(f, &x[i]);
	(void)fputs(more, f);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(mind_trace_read(path, &t), 0);
	(void)unlink(path);
	return t;
}

static const struct frame miss[] = {
	{'b', 0, 0, 0},
	{'i', ASKER, WIRE_RC_READ_REQ, PAGE_VA},
	{'o', NODE, WIRE_RC_READ_REQ, 0x1000},
	{'b', 0, 0, 0},
	{'i', NODE, WIRE_RC_READ_RESP_ONLY, 0},
	{'o', ASKER, WIRE_RC_READ_RESP_ONLY, 0},
};

static void a_miss_is_four_frames(void **state)
{
	struct mind_trace *t = trace_of(miss, ARRAY_LEN(miss), "");

	(void)state;
	assert_int_equal(mind_trace_hops(t, PAGE_VA, 0), 4);
	assert_int_equal(mind_trace_miss(t, PAGE_VA), 4);
	assert_int_equal(mind_trace_hops(t, PAGE_VA, 1), 0);
	assert_int_equal(mind_trace_hops(t, PAGE_VA + 4096, 0), 0);
	assert_true(mind_trace_miss(t, PAGE_VA + 4096) < 0);
	mind_trace_free(t);
}

/* A page that another machine has written, to write: INVAL, give-back, WRITE,
 * its acknowledgement, that of the give-back, FIN, answer. */
static void steps_that_wait_for_each_other_add_up(void **state)
{
	static const struct frame x[] = {
		{'b', 0, 0, 0},
		{'i', ASKER, WIRE_RC_READ_REQ, PAGE_VA},
		{'o', OWNER, WIRE_RC_SEND_ONLY, 0},
		{'b', 0, 0, 0},
		{'i', OWNER, WIRE_RC_ACK, 0},
		{'b', 0, 0, 0},
		{'i', OWNER, WIRE_RC_WRITE_ONLY, PAGE_VA},
		{'o', NODE, WIRE_RC_WRITE_ONLY, 0x1000},
		{'b', 0, 0, 0},
		{'i', NODE, WIRE_RC_ACK, 0},
		{'o', OWNER, WIRE_RC_ACK, 0},
		{'b', 0, 0, 0},
		{'i', OWNER, WIRE_RC_SEND_ONLY, 0},
		{'o', ASKER, WIRE_RC_READ_RESP_ONLY, 0},
		{'o', OWNER, WIRE_RC_ACK, 0},
	};
	struct mind_trace *t = trace_of(x, ARRAY_LEN(x), "");

	(void)state;
	assert_int_equal(mind_trace_hops(t, PAGE_VA, 0), 8);
	mind_trace_free(t);
}

/* Two things at once: the longer chain counts, once. */
static void what_is_done_meanwhile_does_not_add_up(void **state)
{
	static const struct frame x[] = {
		{'b', 0, 0, 0},
		{'i', ASKER, WIRE_RC_READ_REQ, PAGE_VA},
		{'o', OWNER, WIRE_RC_SEND_ONLY, 0},
		{'o', NODE, WIRE_RC_READ_REQ, 0x1000},
		{'b', 0, 0, 0},
		{'i', NODE, WIRE_RC_READ_RESP_ONLY, 0},
		{'b', 0, 0, 0},
		{'i', OWNER, WIRE_RC_SEND_ONLY, 0},
		{'o', OWNER, WIRE_RC_ACK, 0},
		{'o', ASKER, WIRE_RC_READ_RESP_ONLY, 0},
	};
	struct mind_trace *t = trace_of(x, ARRAY_LEN(x), "");

	(void)state;
	assert_int_equal(mind_trace_hops(t, PAGE_VA, 0), 4);
	assert_int_equal(mind_trace_miss(t, PAGE_VA), 7);
	mind_trace_free(t);
}

/* A machine whose NIC repeats its get is not the next one that asks. */
static void a_get_that_is_repeated_is_the_same(void **state)
{
	static const struct frame x[] = {
		{'b', 0, 0, 0},
		{'i', OWNER, WIRE_RC_READ_REQ, PAGE_VA},
		{'o', NODE, WIRE_RC_READ_REQ, 0x1000},
		{'b', 0, 0, 0},
		{'i', OWNER, WIRE_RC_READ_REQ, PAGE_VA},
		{'i', NODE, WIRE_RC_READ_RESP_ONLY, 0},
		{'o', OWNER, WIRE_RC_READ_RESP_ONLY, 0},
		{'b', 0, 0, 0},
		{'i', ASKER, WIRE_RC_READ_REQ, PAGE_VA},
		{'o', OWNER, WIRE_RC_SEND_ONLY, 0},
		{'b', 0, 0, 0},
		{'i', OWNER, WIRE_RC_WRITE_ONLY, PAGE_VA},
		{'o', ASKER, WIRE_RC_READ_RESP_ONLY, 0},
	};
	struct mind_trace *t = trace_of(x, ARRAY_LEN(x), "");

	(void)state;
	assert_int_equal(mind_trace_hops(t, PAGE_VA, 0), 4);
	assert_int_equal(mind_trace_hops(t, PAGE_VA, 1), 4);
	assert_int_equal(mind_trace_hops(t, PAGE_VA, 2), 0);
	mind_trace_free(t);
}

static void frames_between_two_gets(void **state)
{
	struct frame x[2 * ARRAY_LEN(miss) + 1];
	struct mind_trace *t;

	(void)state;
	memcpy(x, miss, sizeof(miss));
	x[ARRAY_LEN(miss)] = (struct frame){'i', OWNER, WIRE_RC_ACK, 0};
	memcpy(x + ARRAY_LEN(miss) + 1, miss, sizeof(miss));
	x[ARRAY_LEN(miss) + 2].va += 4096;
	t = trace_of(x, ARRAY_LEN(x), "");
	assert_int_equal(mind_trace_between(t, PAGE_VA, PAGE_VA + 4096), 1);
	assert_true(mind_trace_between(t, PAGE_VA + 4096, PAGE_VA) < 0);
	mind_trace_free(t);
}

static void lines_that_are_no_packets_count_for_nothing(void **state)
{
	struct mind_trace *t = trace_of(miss, ARRAY_LEN(miss),
					"g coherence\np 3 nic\n\ni\ni 3\n"
					"i 3 00ff\ni 3 0\ni 3 zz\n"
					"i 999999999999 00\no 77 00\nc show\n"
					"r 0\nw 00\ni 3");
	struct mind_trace *none = NULL;

	(void)state;
	assert_int_equal(mind_trace_miss(t, PAGE_VA), 4);
	mind_trace_free(t);
	assert_true(mind_trace_read("/nonexistent/trace", &none) < 0);
	assert_null(none);
	mind_trace_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_miss_is_four_frames),
		cmocka_unit_test(steps_that_wait_for_each_other_add_up),
		cmocka_unit_test(what_is_done_meanwhile_does_not_add_up),
		cmocka_unit_test(a_get_that_is_repeated_is_the_same),
		cmocka_unit_test(frames_between_two_gets),
		cmocka_unit_test(lines_that_are_no_packets_count_for_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
