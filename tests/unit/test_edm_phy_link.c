/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole link: real Ethernet frames, read from a pcap file, and memory
 * messages share it in random interleavings and come out byte for byte and in
 * order. EDM_INTERLEAVINGS sets how many, for long runs: a million take some
 * ten seconds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/error.h"
#include "edm/pcap_read.h"
#include "edm/phy_link.h"

enum {
	FRAMES_MAX = 64,
	MESSAGES_MAX = 64,
	PCAP_FRAMES = 400,
	INTERLEAVINGS = 60000,
};

/* What was sent and has not come yet, in order. */
struct sent {
	struct wire_mem_head head;
	enum wire_block_kind kind;
	uint8_t payload[300];
	uint32_t len_bytes;
};

struct world {
	struct edm_pcap pcap;
	struct rng rng;
	struct edm_phy_link *link;
	/* Frames: offered, taken by the MAC, received. */
	uint64_t frames_due, frames_taken, frames_got;
	struct sent messages[MESSAGES_MAX], controls[MESSAGES_MAX];
	struct sent requests[MESSAGES_MAX]; /* with nest, apart */
	uint32_t messages_sent, messages_got, controls_sent, controls_got;
	uint32_t requests_sent, requests_got;
	uint64_t nested; /* requests that came inside a message */
};

static const struct edm_pcap_frame *nth(const struct world *w, uint64_t n)
{
	return &w->pcap.frame[n % w->pcap.frames];
}

static const uint8_t *source(void *owner, uint32_t *len_bytes)
{
	struct world *w = owner;
	const struct edm_pcap_frame *f = nth(w, w->frames_taken);

	if (w->frames_taken == w->frames_due)
		return NULL;
	w->frames_taken++;
	*len_bytes = f->len_bytes;
	return w->pcap.bytes + f->offset;
}

static void got_frame(void *owner, const uint8_t *frame, uint32_t len_bytes)
{
	struct world *w = owner;
	const struct edm_pcap_frame *f = nth(w, w->frames_got);

	assert_true(w->frames_got < w->frames_taken);
	assert_int_equal(len_bytes, u32_max(f->len_bytes, EDM_FRAME_MIN));
	assert_memory_equal(frame, w->pcap.bytes + f->offset, f->len_bytes);
	for (uint32_t i = f->len_bytes; i < len_bytes; i++)
		assert_int_equal(frame[i], 0);
	w->frames_got++;
}

static bool same_head(const struct wire_mem_head *a,
		      const struct wire_mem_head *b)
{
	return a->size_bytes == b->size_bytes && a->node == b->node &&
	       a->id == b->id && a->op == b->op && a->class == b->class &&
	       a->last == b->last;
}

static void got_message(void *owner, const struct wire_mem_head *head,
			const uint8_t *payload, uint32_t len_bytes)
{
	struct world *w = owner;
	const struct sent *s;

	if (w->link->tx.config.nest && edm_msg_request(head)) {
		assert_true(w->requests_got < w->requests_sent);
		s = &w->requests[w->requests_got++];
		w->nested += w->link->rx.message[0].open;
	} else {
		assert_true(w->messages_got < w->messages_sent);
		s = &w->messages[w->messages_got++];
	}
	assert_true(same_head(head, &s->head));
	assert_int_equal(len_bytes, s->len_bytes);
	assert_memory_equal(payload, s->payload, len_bytes);
}

static void got_control(void *owner, enum wire_block_kind kind,
			const struct wire_mem_head *head)
{
	struct world *w = owner;
	const struct sent *s;

	assert_true(w->controls_got < w->controls_sent);
	s = &w->controls[w->controls_got++];
	assert_int_equal(kind, s->kind);
	assert_true(same_head(head, &s->head));
}

static void put32(FILE *f, uint32_t v, bool big)
{
	if (big)
		v = __builtin_bswap32(v);
	assert_int_equal(fwrite(&v, 4, 1, f), 1);
}

/* An Ethernet frame with an IPv4 header and random bytes behind it. */
static void put_frame(FILE *f, struct rng *r, uint32_t n, bool big)
{
	uint8_t frame[EDM_FRAME_MAX] = {0};

	rng_fill(r, frame, n);
	frame[12] = 0x08;
	frame[13] = 0x00;
	if (n > 34)
		memcpy(frame + 14, "\x45\x00", 2);
	put32(f, 1700000000, big);
	put32(f, 1234, big);
	put32(f, n, big);
	put32(f, n, big);
	assert_int_equal(fwrite(frame, 1, n, f), n);
}

static void write_pcap(const char *path, unsigned frames, bool big)
{
	FILE *f = fopen(path, "wb");
	struct rng r;

	assert_non_null(f);
	rng_init(&r, 11);
	put32(f, 0xa1b2c3d4, big);
	put32(f, big ? 0x00020004 : 0x00040002, big);
	put32(f, 0, big);
	put32(f, 0, big);
	put32(f, 65535, big);
	put32(f, 1, big);
	for (unsigned i = 0; i < frames; i++) {
		uint32_t n = (uint32_t)rng_between(&r, 14, 130);

		if (i % 40 == 20)
			n = 1514;
		if (i % 200 == 100)
			n = EDM_FRAME_MAX;
		put_frame(f, &r, n, big);
	}
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	char path[] = "/tmp/aq_edm_XXXXXX";
	struct world *w = calloc(1, sizeof(*w));
	int fd = mkstemp(path);

	assert_non_null(w);
	assert_true(fd >= 0);
	close(fd);
	write_pcap(path, PCAP_FRAMES, false);
	assert_int_equal(edm_pcap_read(path, &w->pcap), 0);
	unlink(path);
	assert_int_equal(w->pcap.frames, PCAP_FRAMES);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	edm_pcap_release(&w->pcap);
	free(w);
	return 0;
}

static void open_link(struct world *w, const struct edm_phy_config *c,
		      enum edm_tx_policy policy, uint64_t seed)
{
	struct edm_phy_link_config lc = {
		.phy = *c,
		.policy = policy,
		.seed = seed,
		.source = source,
		.frames = got_frame,
		.frame_owner = w,
		.memory = {got_message, got_control, w},
	};

	assert_int_equal(edm_phy_link_create(&lc, &w->link), 0);
	rng_init(&w->rng, seed);
	w->frames_due = w->frames_taken = w->frames_got = 0;
}

static struct wire_mem_head random_head(struct rng *r)
{
	struct wire_mem_head h = {
		.node = (uint16_t)rng_below(r, WIRE_MEM_NODES),
		.id = (uint8_t)rng_u64(r),
		.op = (uint8_t)rng_below(r, WIRE_MEM_OPS),
		.class = (uint8_t)rng_below(r, WIRE_MEM_CLASSES),
		.last = rng_below(r, 2),
	};

	if (h.op == WIRE_MEM_RREQ)
		h.size_bytes = 64 * (uint32_t)rng_below(r, 65536);
	else
		h.size_bytes = (uint32_t)rng_below(r, 8)
				       ? (uint32_t)rng_below(r, 80)
				       : (uint32_t)rng_below(r, 265);
	return h;
}

static void send_message(struct world *w)
{
	struct wire_mem_head head = random_head(&w->rng);
	bool nest = w->link->tx.config.nest && edm_msg_request(&head);
	struct sent *s = nest ? &w->requests[w->requests_sent++]
			      : &w->messages[w->messages_sent++];

	s->head = head;
	s->len_bytes = edm_msg_bytes(&s->head);
	rng_fill(&w->rng, s->payload, s->len_bytes);
	assert_int_equal(edm_phy_tx_message(&w->link->tx, &s->head, s->payload),
			 0);
}

static void send_control(struct world *w)
{
	struct sent *s = &w->controls[w->controls_sent++];

	s->head = random_head(&w->rng);
	s->kind = rng_below(&w->rng, 2) ? WIRE_BLOCK_MEM_NOTIFY
					: WIRE_BLOCK_MEM_GRANT;
	assert_int_equal(edm_phy_tx_control(&w->link->tx, s->kind, &s->head),
			 0);
}

/* A few frames, messages and control blocks at random times, until all of them
 * are through. */
static void interleave(struct world *w)
{
	uint64_t bits = rng_u64(&w->rng);
	unsigned frames = bits & 3, messages = bits >> 2 & 3;
	unsigned controls = bits >> 4 & 1;
	uint64_t frames_end = w->frames_due + frames;
	struct edm_tx_out out;

	w->messages_sent = w->messages_got = 0;
	w->requests_sent = w->requests_got = 0;
	w->controls_sent = w->controls_got = 0;
	while (frames || messages || controls || !edm_phy_link_quiet(w->link) ||
	       w->frames_got < w->frames_due) {
		bits = rng_u64(&w->rng);
		if (frames && !(bits & 7)) {
			frames--;
			w->frames_due++;
		}
		if (messages && !(bits >> 3 & 7)) {
			messages--;
			send_message(w);
		}
		if (controls && !(bits >> 6 & 15)) {
			controls--;
			send_control(w);
		}
		assert_int_equal(edm_phy_link_step(w->link, &out), 0);
	}
	assert_int_equal(w->frames_got, frames_end);
	assert_int_equal(w->messages_got, w->messages_sent);
	assert_int_equal(w->requests_got, w->requests_sent);
	assert_int_equal(w->controls_got, w->controls_sent);
}

static void check_bounds(const struct world *w)
{
	const struct edm_phy_link *l = w->link;

	assert_in_range(l->tx.stats.fifo_max, 0, EDM_TX_FIFO);
	/* The longest frame and what is under way at the other end. */
	assert_in_range(l->rx.stats.buffer_max, 0,
			EDM_FRAME_BLOCKS_MAX + EDM_TX_FIFO + 2);
	assert_int_equal(l->mac_rx.stats.short_gaps, 0);
	assert_int_equal(l->mac_rx.stats.bad_fcs, 0);
	assert_int_equal(l->mac_rx.stats.bad_order, 0);
	assert_int_equal(l->mac_rx.stats.bad_length, 0);
	assert_int_equal(l->rx.stats.bad_order, 0);
	assert_int_equal(l->rx.stats.bad_type, 0);
	assert_int_equal(l->rx.stats.stray_blocks, 0);
}

enum {
	KINDS = 48
};

static struct edm_phy_config kind_of_link(unsigned k)
{
	return (struct edm_phy_config){.md = k & 1,
				       .crc = k >> 1 & 1,
				       .nest = k >= KINDS / 2,
				       .map = k / 4 % WIRE_MAP_COUNT,
				       .start_align = k / 12 % 2 ? 4 : 8};
}

static void random_interleavings(void **state)
{
	struct world *w = *state;
	const char *text = getenv("EDM_INTERLEAVINGS");
	unsigned long total = text ? strtoul(text, NULL, 10) : INTERLEAVINGS;
	uint64_t blocks = 0, preempted = 0, reused = 0;
	unsigned kinds = 0;

	for (unsigned k = 0; k < KINDS; k++) {
		struct edm_phy_config c = kind_of_link(k);

		kinds += !edm_phy_config_check(&c);
	}
	w->nested = 0;
	for (unsigned k = 0; k < KINDS; k++) {
		struct edm_phy_config c = kind_of_link(k);

		if (edm_phy_config_check(&c))
			continue;
		open_link(w, &c, EDM_TX_RANDOM, 100 + k);
		for (unsigned long i = 0; i < (total + kinds - 1) / kinds; i++)
			interleave(w);
		check_bounds(w);
		blocks += w->link->now;
		preempted += w->link->tx.stats.preemptions;
		reused += w->link->tx.stats.gaps_reused;
		edm_phy_link_destroy(w->link);
	}
	assert_true(preempted > total / 4);
	assert_true(reused > total / 4);
	assert_true(w->nested > total / 100);
	print_message("%lu interleavings, %u kinds of link: %llu blocks, %llu "
		      "preemptions, %llu gaps reused, %llu nested\n",
		      total, kinds, (unsigned long long)blocks,
		      (unsigned long long)preempted, (unsigned long long)reused,
		      (unsigned long long)w->nested);
}

/* A request that comes while a chunk is on the wire is through two blocks
 * later, before the chunk; without nesting it waits for the chunk's end. */
static void requests_do_not_wait(void **state)
{
	struct world *w = *state;

	for (int nest = 0; nest < 2; nest++) {
		struct edm_phy_config c = {.nest = nest, .start_align = 8};
		const struct wire_mem_head chunk = {.op = WIRE_MEM_RRES,
						    .size_bytes = 256};
		const struct wire_mem_head ask = {.op = WIRE_MEM_RREQ,
						  .size_bytes = 64};
		static const uint8_t bytes[256] = {1};
		struct edm_tx_out out;

		open_link(w, &c, EDM_TX_FAIR, 1);
		w->messages_got = w->requests_got = 0;
		w->messages[0] = (struct sent){.head = chunk, .len_bytes = 256};
		memcpy(w->messages[0].payload, bytes, sizeof(bytes));
		w->messages[1] = w->requests[0] =
			(struct sent){.head = ask, .len_bytes = 8};
		w->messages_sent = 2 - (uint32_t)nest;
		w->requests_sent = (uint32_t)nest;
		assert_int_equal(
			edm_phy_tx_message(&w->link->tx, &chunk, bytes), 0);
		for (int i = 0; i < 10; i++)
			(void)edm_phy_link_step(w->link, &out);
		assert_int_equal(edm_phy_tx_message(&w->link->tx, &ask,
						    w->requests[0].payload),
				 0);
		for (int i = 0; i < 2; i++)
			(void)edm_phy_link_step(w->link, &out);
		assert_int_equal(w->requests_got, nest);
		assert_int_equal(w->messages_got, 0);
		for (int i = 0; i < 33 - 10; i++)
			(void)edm_phy_link_step(w->link, &out);
		assert_int_equal(w->messages_got, 2 - nest);
		assert_true(edm_phy_link_quiet(w->link));
		edm_phy_link_destroy(w->link);
	}
}

/* A saturated link under each policy: everything arrives, the MAC's buffer
 * reaches its bound of four and does not pass it, frames lose no gap. */
static void saturation(void **state)
{
	struct world *w = *state;

	for (int p = 0; p < EDM_TX_POLICIES; p++) {
		for (int md = 0; md < 2; md++) {
			struct edm_phy_config c = {.md = md, .start_align = 8};
			struct edm_tx_out out;
			uint32_t frames = 2 * PCAP_FRAMES;

			open_link(w, &c, p, 7);
			w->frames_due = frames;
			w->messages_sent = w->messages_got = 0;
			while (w->frames_got < frames ||
			       w->messages_got < w->messages_sent) {
				if (w->messages_got == w->messages_sent)
					w->messages_sent = w->messages_got = 0;
				/* Not all the time, or memory would
				 * leave nothing to frames. */
				if (!edm_phy_tx_backlog(&w->link->tx) &&
				    !rng_below(&w->rng, 16) &&
				    w->messages_sent < MESSAGES_MAX &&
				    w->frames_got + 20 < frames)
					send_message(w);
				edm_phy_link_step(w->link, &out);
				assert_in_range(w->link->now, 1, 1000000);
			}
			check_bounds(w);
			if (p == EDM_TX_MEMORY)
				assert_int_equal(w->link->tx.stats.fifo_max,
						 EDM_TX_FIFO);
			if (p == EDM_TX_FAIR && md == EDM_MD_CONTROL)
				assert_int_equal(
					w->link->tx.stats.head_wait_max, 1);
			if (p == EDM_TX_MEMORY)
				assert_int_equal(
					w->link->tx.stats.head_wait_max, 0);
			if (p == EDM_TX_GAPS && md == EDM_MD_CONTROL)
				assert_int_equal(w->link->tx.stats.preemptions,
						 0);
			edm_phy_link_destroy(w->link);
		}
	}
}

struct flood {
	uint8_t frame[EDM_FRAME_MAX];
	uint32_t len_bytes;
};

static const uint8_t *flood_source(void *owner, uint32_t *len_bytes)
{
	*len_bytes = ((struct flood *)owner)->len_bytes;
	return ((struct flood *)owner)->frame;
}

/* Whole idle blocks between frames that saturate a link, which is all that
 * memory gets without preemption: 0.5 of 10.5 blocks, 1.25 of 192.25. */
static void gaps_alone(void **state)
{
	static const struct {
		uint32_t len_bytes;
		double share;
	} known[] = {{60, 0.5 / 10.5}, {1514, 1.25 / 192.25}};
	struct edm_phy_config c = {.md = EDM_MD_CONTROL, .start_align = 8};
	struct wire_mem_head h = {.op = WIRE_MEM_RREQ, .size_bytes = 64};
	struct edm_phy_tx *t = calloc(1, sizeof(*t));
	struct edm_mac_tx *m = calloc(1, sizeof(*m));
	struct flood f = {.len_bytes = 0};

	assert_non_null(t);
	assert_non_null(m);
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		uint32_t blocks = 400000;
		struct edm_tx_out out;
		double share;

		f.len_bytes = known[i].len_bytes;
		edm_mac_tx_init(m, 8, flood_source, &f);
		assert_int_equal(edm_phy_tx_init(t, &c, EDM_TX_GAPS, m, NULL),
				 0);
		for (uint32_t n = 0; n < blocks; n++) {
			if (edm_phy_tx_backlog(t) < 10)
				assert_int_equal(
					edm_phy_tx_message(t, &h, f.frame), 0);
			edm_phy_tx_step(t, &out);
		}
		share = (double)t->stats.blocks[EDM_SLOT_MEMORY] / blocks;
		assert_true(share > known[i].share * 0.995);
		assert_true(share < known[i].share * 1.005);
		assert_int_equal(t->stats.fifo_max, 0);
	}
	free(t);
	free(m);
}

/* The queues of the sender end somewhere and say so. */
static void sender_queues_bounded(void **state)
{
	struct edm_phy_config c = {.start_align = 8};
	struct edm_phy_tx *t = calloc(1, sizeof(*t));
	struct wire_mem_head h = {.op = WIRE_MEM_RREQ, .size_bytes = 64};
	uint8_t address[8] = {0};
	uint32_t n = 0;

	assert_non_null(t);
	assert_int_equal(edm_phy_tx_init(t, &c, EDM_TX_FAIR, NULL, NULL), 0);
	while (!edm_phy_tx_message(t, &h, address))
		n++;
	assert_int_equal(n, EDM_TX_QUEUE / 2);
	for (n = 0; !edm_phy_tx_control(t, WIRE_BLOCK_MEM_GRANT, &h);)
		n++;
	assert_int_equal(n, EDM_TX_CTL);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_interleavings),
		cmocka_unit_test(requests_do_not_wait),
		cmocka_unit_test(saturation),
		cmocka_unit_test(gaps_alone),
		cmocka_unit_test(sender_queues_bounded),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
