/* SPDX-License-Identifier: Apache-2.0 */
/* What the fault program does to a packet; its options are in fault_parse.c. */
#include "fault.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json_out.h"

#define FAULT_COUNTERS(X) \
	X(seen)           \
	X(lost)           \
	X(duplicated)     \
	X(reordered)      \
	X(delayed)        \
	X(corrupted)      \
	X(forged)         \
	X(cut)            \
	X(not_held)

enum fault_counter {
#define ENUM(name) FAULT_##name,
	FAULT_COUNTERS(ENUM)
#undef ENUM
	FAULT_COUNTER_COUNT
};

static const char *const names[] = {
#define NAME(name) #name,
	FAULT_COUNTERS(NAME)
#undef NAME
};

struct fault;

/* A frame that leaves later. */
struct held {
	struct timer timer;
	struct fault *fault;
	struct held *next; /* of the free ones */
	struct tor_port *in;
	uint32_t len_bytes;
	uint8_t frame[TOR_FRAME_MAX];
};

struct fault {
	struct tor_instance *self;
	struct tor *tor;
	uint64_t *counters;
	uint64_t start_ns;
	struct rng rng;
	struct fault_options opt;
	struct held *held; /* TOR_FAULT_HELD */
	struct held *free;
	uint8_t scratch[TOR_FRAME_MAX];
};

/* ---- frames for later --------------------------------------------------- */

static void held_due(struct timer *timer, uint64_t now_ns)
{
	struct held *h = container_of(timer, struct held, timer);
	struct fault *f = h->fault;

	tor_emit_frame(f->self, h->in, h->frame, h->len_bytes);
	h->next = f->free;
	f->free = h;
}

/* The packet as bytes: other programs may have changed it before. */
static const uint8_t *frame_of(struct fault *f, const struct tor_pkt *pkt,
			       size_t *len_bytes)
{
	if (!pkt->changed) {
		*len_bytes = pkt->len_bytes;
		return pkt->frame;
	}
	*len_bytes = wire_build(&pkt->wire, f->scratch);
	return f->scratch;
}

static enum tor_verdict hold(struct fault *f, const struct tor_pkt *pkt,
			     uint64_t delay_ns)
{
	struct held *h = f->free;
	const uint8_t *frame;
	size_t len_bytes;

	frame = frame_of(f, pkt, &len_bytes);
	if (!h || pkt->hint || len_bytes > sizeof(h->frame)) {
		f->counters[FAULT_not_held]++;
		return TOR_PASS;
	}
	f->free = h->next;
	h->in = pkt->in;
	h->len_bytes = (uint32_t)len_bytes;
	memcpy(h->frame, frame, len_bytes);
	timer_set(tor_timers(f->tor), &h->timer, tor_now_ns(f->tor) + delay_ns);
	return TOR_TAKEN;
}

/* ---- damage ------------------------------------------------------------- */

/* One to three flipped bits, anywhere behind the Ethernet header: the ICRC
 * finds them all. */
static enum tor_verdict corrupt(struct fault *f, const struct tor_pkt *pkt)
{
	uint64_t n = rng_between(&f->rng, 1, 3);
	const uint8_t *frame;
	size_t len_bytes;

	frame = frame_of(f, pkt, &len_bytes);
	if (len_bytes > sizeof(f->scratch) || len_bytes <= WIRE_ETH_BYTES) {
		f->counters[FAULT_not_held]++;
		return TOR_PASS;
	}
	if (frame != f->scratch)
		memcpy(f->scratch, frame, len_bytes);
	while (n--) {
		uint64_t bit =
			rng_below(&f->rng, (len_bytes - WIRE_ETH_BYTES) * 8);

		f->scratch[WIRE_ETH_BYTES + bit / 8] ^=
			(uint8_t)(1u << bit % 8);
	}
	f->counters[FAULT_corrupted]++;
	tor_emit_frame(f->self, pkt->in, f->scratch, len_bytes);
	return TOR_TAKEN;
}

/* A wrong payload under a right ICRC: what a bad switch or bus would do, and
 * only a check from end to end can find. */
static enum tor_verdict forge(struct fault *f, struct tor_pkt *pkt)
{
	uint64_t bit;

	if (!pkt->roce || pkt->wire.payload_len == 0)
		return TOR_PASS;
	memcpy(f->scratch, pkt->wire.payload, pkt->wire.payload_len);
	bit = rng_below(&f->rng, (uint64_t)pkt->wire.payload_len * 8);
	f->scratch[bit / 8] ^= (uint8_t)(1u << bit % 8);
	pkt->wire.payload = f->scratch;
	f->counters[FAULT_forged]++;
	tor_emit(f->self, pkt->in, &pkt->wire);
	return TOR_TAKEN;
}

/* ---- which packets ------------------------------------------------------ */

static bool is_time(const struct fault *f, const struct fault_rule *r)
{
	uint64_t t = tor_now_ns(f->tor) - f->start_ns;

	if (r->period_ns)
		t %= r->period_ns;
	return t >= r->from_ns && (!r->until_ns || t < r->until_ns);
}

static bool matches(const struct fault *f, const struct fault_rule *r,
		    const struct tor_pkt *pkt)
{
	if (!r->every_frame && !pkt->roce)
		return false;
	if (r->kinds && !(pkt->roce &&
			  r->kinds & 1u << wire_opcodes[pkt->wire.opcode].kind))
		return false;
	if (r->in[0] &&
	    (!pkt->in || strcmp(r->in, tor_port_name(pkt->in)) != 0))
		return false;
	return is_time(f, r);
}

static bool is_cut(const struct fault_rule *r, const struct tor_pkt *pkt)
{
	const struct tor_port *out;
	unsigned from;

	if (!r->cut[0][0] || !pkt->in)
		return false;
	if (strcmp(tor_port_name(pkt->in), r->cut[0]) == 0)
		from = 0;
	else if (strcmp(tor_port_name(pkt->in), r->cut[1]) == 0)
		from = 1;
	else
		return false;
	out = tor_pkt_route(pkt);
	return out && strcmp(tor_port_name(out), r->cut[!from]) == 0;
}

/* ---- a packet ----------------------------------------------------------- */

static enum tor_verdict lose(struct fault *f)
{
	f->counters[FAULT_lost]++;
	return TOR_DROP;
}

static enum tor_verdict duplicate(struct fault *f, const struct tor_pkt *pkt)
{
	const uint8_t *frame;
	size_t len_bytes;

	frame = frame_of(f, pkt, &len_bytes);
	if (pkt->hint || len_bytes > TOR_FRAME_MAX)
		return TOR_PASS;
	f->counters[FAULT_duplicated]++;
	tor_emit_frame(f->self, pkt->in, frame, len_bytes);
	return TOR_PASS;
}

static enum tor_verdict delay(struct fault *f, const struct fault_rule *r,
			      const struct tor_pkt *pkt)
{
	enum tor_verdict v = hold(
		f, pkt, rng_between(&f->rng, r->delay_min_ns, r->delay_max_ns));

	if (v == TOR_TAKEN)
		f->counters[FAULT_delayed]++;
	return v;
}

static enum tor_verdict reorder(struct fault *f, const struct fault_rule *r,
				const struct tor_pkt *pkt)
{
	enum tor_verdict v =
		hold(f, pkt, rng_between(&f->rng, 1, r->reorder_ns + 1));

	if (v == TOR_TAKEN)
		f->counters[FAULT_reordered]++;
	return v;
}

static enum tor_verdict by_pattern(struct fault *f, struct fault_rule *r,
				   struct tor_pkt *pkt)
{
	char what = r->pattern[r->pattern_at];

	r->pattern_at = (r->pattern_at + 1) % r->pattern_len;
	switch (what) {
	case 'x':
		return lose(f);
	case '2':
		return duplicate(f, pkt);
	case 'c':
		return corrupt(f, pkt);
	case 'd':
		return delay(f, r, pkt);
	default:
		return TOR_PASS;
	}
}

static enum tor_verdict apply(struct fault *f, struct fault_rule *r,
			      struct tor_pkt *pkt)
{
	if (is_cut(r, pkt)) {
		f->counters[FAULT_cut]++;
		return TOR_DROP;
	}
	if (r->nth && ++r->nth_at % r->nth == 0)
		return lose(f);
	if (r->pattern_len)
		return by_pattern(f, r, pkt);
	if (rng_chance_ppm(&f->rng, r->loss_ppm))
		return lose(f);
	if (rng_chance_ppm(&f->rng, r->dup_ppm))
		(void)duplicate(f, pkt);
	if (rng_chance_ppm(&f->rng, r->forge_ppm))
		return forge(f, pkt);
	if (rng_chance_ppm(&f->rng, r->corrupt_ppm))
		return corrupt(f, pkt);
	if (rng_chance_ppm(&f->rng, r->reorder_ppm))
		return reorder(f, r, pkt);
	if (rng_chance_ppm(&f->rng, r->delay_ppm))
		return delay(f, r, pkt);
	return TOR_PASS;
}

static enum tor_verdict fault_packet(void *state, struct tor_pkt *pkt)
{
	struct fault *f = state;

	f->counters[FAULT_seen]++;
	for (unsigned i = 0; i < f->opt.rule_count; i++) {
		struct fault_rule *r = &f->opt.rules[i];
		enum tor_verdict v;

		if (!matches(f, r, pkt))
			continue;
		v = apply(f, r, pkt);
		if (v != TOR_PASS)
			return v;
	}
	return TOR_PASS;
}

/* ---- life --------------------------------------------------------------- */

static void take_options(struct fault *f, const struct fault_options *opt)
{
	uint64_t seed = opt->seed;

	f->opt = *opt;
	if (!opt->has_seed)
		env_random(tor_env(f->tor), &seed, sizeof(seed));
	f->opt.seed = seed;
	rng_init(&f->rng, seed);
	f->start_ns = tor_now_ns(f->tor);
}

static void fault_release(void *state)
{
	struct fault *f = state;

	for (unsigned i = 0; f->held && i < TOR_FAULT_HELD; i++)
		timer_cancel(tor_timers(f->tor), &f->held[i].timer);
	free(f->held);
}

static int fault_init(void *state, struct tor_instance *self,
		      const char *options)
{
	struct fault_options opt;
	struct fault *f = state;
	int err = fault_parse(options, &opt);

	if (err)
		return err;
	f->self = self;
	f->tor = tor_instance_tor(self);
	f->counters = tor_instance_counters(self);
	f->held = calloc(TOR_FAULT_HELD, sizeof(*f->held));
	if (!f->held)
		return -ENOMEM;
	for (unsigned i = 0; i < TOR_FAULT_HELD; i++) {
		struct held *h = &f->held[i];

		timer_init(&h->timer, held_due);
		h->fault = f;
		h->next = f->free;
		f->free = h;
	}
	take_options(f, &opt);
	return 0;
}

static int fault_reload(void *state, const char *options)
{
	struct fault_options opt;
	int err = fault_parse(options, &opt);

	if (!err)
		take_options(state, &opt);
	return err;
}

static int fault_control(void *state, const char *verb, struct json_out *out)
{
	struct fault *f = state;

	if (strcmp(verb, "show") != 0)
		return error_set(-EINVAL,
				 "fault understands 'reload OPTIONS' and "
				 "'show', not '%.32s'",
				 verb);
	json_out_u64(out, "rules", f->opt.rule_count);
	json_out_u64(out, "seed", f->opt.seed);
	return 0;
}

static void fault_port_gone(void *state, const struct tor_port *port)
{
	struct fault *f = state;

	for (unsigned i = 0; i < TOR_FAULT_HELD; i++)
		if (f->held[i].in == port)
			f->held[i].in = NULL;
}

static unsigned fault_tables(const void *state,
			     struct tor_table table[TOR_TABLE_MAX])
{
	table[0] = (struct tor_table){.name = "rules",
				      .entries = TOR_FAULT_RULES,
				      .key_bits = 16 + 9,
				      .value_bits = 6 * 20 + 4 * 48,
				      .stages = 1};
	table[1] = (struct tor_table){.name = "held frames",
				      .entries = TOR_FAULT_HELD,
				      .value_bits = TOR_FRAME_MAX * 8,
				      .stages = 1};
	return 2;
}

const struct tor_program tor_fault = {
	.name = "fault",
	.help = "loses, doubles, delays, reorders and damages packets",
	.counter_names = names,
	.counter_count = FAULT_COUNTER_COUNT,
	.state_bytes = sizeof(struct fault),
	.init = fault_init,
	.release = fault_release,
	.packet = fault_packet,
	.wants_all = true,
	.sees_ends = true,
	.reload = fault_reload,
	.control = fault_control,
	.port_gone = fault_port_gone,
	.tables = fault_tables,
};
