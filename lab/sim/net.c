/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports, and what happens to frames between them apart from time passing,
 * which is the fabric's.
 */
#include "net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net_fabric.h"
#include "net_trace.h"
#include "net_wire.h"
#include "wire/wire.h"

enum {
	PORT_MAX = 1024,
	PORT_HASH = 2 * PORT_MAX,
	PROTO_UDP = 17,
	FRAME_SMALL = 256, /* most frames are acknowledgements */
	/* Who asks for room counts pad and ICRC as two whole words. */
	FRAME_LARGE = (WIRE_FRAME_MAX + 63) / 64 * 64,
};

struct sim_port {
	struct sim_net *net;
	unsigned index;
	struct env_addr addr;
	struct sim_link link;
	const struct sim_port_ops *ops;
	void *ctx;
	struct rng rand;
	uint32_t queued;
	bool was_full;
	bool down;
	uint64_t bytes;
	uint64_t frames;
	uint64_t cut[PORT_MAX / 64]; /* a bit per port it cannot reach */
	struct net_wire emit;	     /* the wire from another switch */
};

struct sim_net {
	struct sim *sim;
	struct sim_fabric *fabric;
	struct sim_port *ports[PORT_MAX];
	unsigned port_count;
	struct sim_port *by_ip[PORT_HASH]; /* open addressing */
	uint64_t switch_ps;
	struct sim_net_stats stats;
	struct sim_frame *all;	 /* every frame, to be freed at the end */
	struct sim_frame *small; /* those not in use */
	struct sim_frame *large;
	struct net_trace trace;
	sim_net_tap tap;
	void *tap_ctx;
	sim_net_tap fault_tap;
	void *fault_tap_ctx;
	bool has_classes;
	sim_net_switch sw; /* NULL: the fabric's own */
	void *sw_ctx;
};

int sim_net_create(struct sim *sim, struct sim_net **out)
{
	struct sim_net *net = calloc(1, sizeof(*net));

	if (!net)
		return -ENOMEM;
	net->sim = sim;
	if (sim_ethernet_create(&net->fabric)) {
		free(net);
		return -ENOMEM;
	}
	net->fabric->net = net;
	*out = net;
	return 0;
}

int sim_net_set_fabric(struct sim_net *net, struct sim_fabric *fabric)
{
	if (net->port_count) {
		fabric->ops->destroy(fabric);
		return -EBUSY;
	}
	net->fabric->ops->destroy(net->fabric);
	net->fabric = fabric;
	fabric->net = net;
	return 0;
}

struct sim_fabric *sim_net_fabric(struct sim_net *net)
{
	return net->fabric;
}

void sim_net_destroy(struct sim_net *net)
{
	if (!net)
		return;
	/* It takes its event out of a queue that the frames' events are in. */
	net->fabric->ops->destroy(net->fabric);
	for (unsigned i = 0; i < net->port_count; i++)
		free(net->ports[i]);
	while (net->all) {
		struct sim_frame *f = net->all;

		net->all = f->all_next;
		free(f);
	}
	free(net);
}

struct sim *sim_net_sim(struct sim_net *net)
{
	return net->sim;
}

const struct sim_net_stats *sim_net_stats(const struct sim_net *net)
{
	return &net->stats;
}

void sim_net_set_switch_ps(struct sim_net *net, uint64_t switch_ps)
{
	net->switch_ps = switch_ps;
}

void sim_net_set_classes(struct sim_net *net)
{
	net->has_classes = true;
}

bool sim_net_has_classes(const struct sim_net *net)
{
	return net->has_classes;
}

bool sim_frame_is_rdma(const struct sim_frame *f)
{
	const uint8_t *ip = f->bytes + WIRE_ETH_BYTES;
	bool ipv4 = f->bytes[12] == 0x08 && f->bytes[13] == 0;
	size_t ip_bytes = ipv4 ? WIRE_IP4_BYTES : WIRE_IP6_BYTES;
	const uint8_t *udp = ip + ip_bytes;

	return f->len_bytes >= WIRE_ETH_BYTES + ip_bytes + WIRE_UDP_BYTES &&
	       ip[ipv4 ? 9 : 6] == PROTO_UDP &&
	       (udp[2] << 8 | udp[3]) == WIRE_UDP_PORT;
}

bool sim_frame_is_urgent(const struct sim_frame *f)
{
	bool ipv4 = f->bytes[12] == 0x08 && f->bytes[13] == 0;

	return sim_frame_is_rdma(f) ||
	       (ipv4 && f->len_bytes >= WIRE_ETH_BYTES + WIRE_IP4_BYTES &&
		f->bytes[WIRE_ETH_BYTES + 1] >> 2);
}

uint64_t sim_net_switch_ps(const struct sim_net *net)
{
	return net->switch_ps;
}

void sim_net_set_trace(struct sim_net *net, FILE *text)
{
	net->trace.text = text;
}

void sim_net_hide_addresses(struct sim_net *net)
{
	net->trace.hides_addresses = true;
}

void sim_net_hide_payload(struct sim_net *net)
{
	net->trace.hides_addresses = true;
	net->trace.hides_payload = true;
}

void sim_net_set_tap(struct sim_net *net, sim_net_tap tap, void *ctx)
{
	net->tap = tap;
	net->tap_ctx = ctx;
}

void sim_net_set_fault_tap(struct sim_net *net, sim_net_tap tap, void *ctx)
{
	net->fault_tap = tap;
	net->fault_tap_ctx = ctx;
}

static void tell_fault(struct sim_net *net, const uint8_t *frame,
		       size_t len_bytes)
{
	if (net->fault_tap)
		net->fault_tap(net->fault_tap_ctx, frame, len_bytes);
}

int sim_net_set_pcap(struct sim_net *net, FILE *pcap)
{
	net->trace.pcap = pcap;
	return net_trace_pcap_header(&net->trace);
}

/* Where the port with this address is, or would be. The table is never full,
 * because it has twice the places. */
static struct sim_port **find_slot(struct sim_net *net, const uint8_t ip[16])
{
	unsigned i = (ip[14] * 31u + ip[15] * 7u + ip[13]) % PORT_HASH;

	while (net->by_ip[i] && memcmp(net->by_ip[i]->addr.ip, ip, 16) != 0)
		i = (i + 1) % PORT_HASH;
	return &net->by_ip[i];
}

static void emitted(struct sim_frame *f, uint64_t end_ps)
{
	sim_net_arrive(f->net, f, end_ps + f->port->link.latency_ps);
}

int sim_port_attach(struct sim_net *net, const struct env_addr *addr,
		    const struct sim_link *link, const struct sim_port_ops *ops,
		    void *ctx, struct sim_port **out)
{
	struct sim_port *port;
	int err;

	if (net->port_count == PORT_MAX)
		return -ENOSPC;
	if (sim_net_find(net, addr->ip))
		return -EEXIST;
	err = net->fabric->ops->attach(net->fabric, net->port_count);
	if (err)
		return err;
	port = calloc(1, sizeof(*port));
	if (!port)
		return -ENOMEM;
	port->net = net;
	port->index = net->port_count;
	port->addr = *addr;
	port->link = *link;
	port->ops = ops;
	port->ctx = ctx;
	net_wire_init(&port->emit, emitted);
	sim_rand_init(&port->rand, sim_seed(net->sim), 1000 + port->index);
	net->ports[net->port_count++] = port;
	*find_slot(net, addr->ip) = port;
	*out = port;
	return 0;
}

struct sim_port *sim_net_find(struct sim_net *net, const uint8_t ip[16])
{
	return *find_slot(net, ip);
}

unsigned sim_port_index(const struct sim_port *port)
{
	return port->index;
}

const struct sim_link *sim_port_link(const struct sim_port *port)
{
	return &port->link;
}

uint64_t sim_port_bytes(const struct sim_port *port)
{
	return port->bytes;
}

uint64_t sim_port_frames(const struct sim_port *port)
{
	return port->frames;
}

void sim_port_set_faults(struct sim_port *port, const struct sim_faults *f)
{
	port->link.faults = *f;
}

void sim_port_set_down(struct sim_port *port, bool down)
{
	port->down = down;
}

static void cut_one(struct sim_port *a, const struct sim_port *b, bool cut)
{
	uint64_t bit = 1ull << b->index % 64;

	if (cut)
		a->cut[b->index / 64] |= bit;
	else
		a->cut[b->index / 64] &= ~bit;
}

void sim_net_set_cut(struct sim_port *a, struct sim_port *b, bool cut)
{
	cut_one(a, b, cut);
	cut_one(b, a, cut);
}

static bool is_cut(const struct sim_port *from, const struct sim_port *to)
{
	return from->down || to->down ||
	       (from->cut[to->index / 64] & 1ull << to->index % 64);
}

static struct sim_frame *frame_alloc(struct sim_net *net, size_t max_bytes)
{
	bool small = max_bytes <= FRAME_SMALL;
	struct sim_frame **pool = small ? &net->small : &net->large;
	struct sim_frame *f = *pool;
	uint32_t room = small ? FRAME_SMALL : FRAME_LARGE;

	ASSERT(max_bytes <= FRAME_LARGE);
	if (f) {
		*pool = f->next;
		return f;
	}
	f = malloc(sizeof(*f) + room);
	ASSERT(f); /* a simulation without memory cannot go on */
	f->net = net;
	f->room_bytes = room;
	f->all_next = net->all;
	net->all = f;
	return f;
}

void sim_frame_free(struct sim_net *net, struct sim_frame *frame)
{
	struct sim_frame **pool =
		frame->room_bytes == FRAME_SMALL ? &net->small : &net->large;

	frame->next = *pool;
	*pool = frame;
}

static void deliver(struct sim *sim, struct sim_event *ev)
{
	struct sim_frame *f = container_of(ev, struct sim_frame, ev);
	struct sim_port *port = f->port;
	struct sim_net *net = port->net;

	if (port->down) {
		net->stats.cut++;
		tell_fault(net, f->bytes, f->len_bytes);
		sim_frame_free(net, f);
		return;
	}
	net->stats.delivered++;
	port->bytes += f->len_bytes;
	port->frames++;
	net_trace_note(&net->trace, sim, f->bytes, f->len_bytes);
	if (net_trace_on(&net->trace))
		net_trace_frame(&net->trace, sim_now_ps(sim), "deliver",
				f->bytes, f->len_bytes);
	port->ops->rx(port->ctx, f);
}

void sim_net_arrive(struct sim_net *net, struct sim_frame *f, uint64_t at_ps)
{
	struct sim_port *to = f->port;
	const struct sim_faults *faults = &to->link.faults;

	if (sim_rand_chance(&to->rand, faults->reorder_ppm)) {
		net->stats.reordered++;
		tell_fault(net, f->bytes, f->len_bytes);
		at_ps += rng_u64(&to->rand) % (faults->reorder_max_ps + 1);
	}
	sim_event_init(&f->ev, deliver);
	sim_schedule_at(net->sim, &f->ev, at_ps);
}

static void flip_bits(struct sim_port *from, struct sim_frame *f)
{
	unsigned n = sim_rand_range(&from->rand, 1, 3);

	/* A CRC-32 sees every error of up to three bits at these lengths. */
	while (n--) {
		uint32_t bit = sim_rand_below(&from->rand, f->len_bytes * 8);

		f->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
}

/* What a switch does to a frame when its queue is long (RFC 3168). */
void sim_net_mark(struct sim_net *net, struct sim_frame *f)
{
	uint8_t *ip = f->bytes + WIRE_ETH_BYTES;
	uint32_t sum;

	if (f->len_bytes < WIRE_ETH_BYTES + WIRE_IP4_BYTES)
		return;
	if (ip[0] >> 4 == 4 && (ip[1] & WIRE_ECN_MASK) == WIRE_ECT0) {
		ip[1] |= WIRE_CE;
		/* One more in a word of the header, one less in its sum. */
		sum = (uint32_t)(ip[10] << 8 | ip[11]) + 0xfffe;
		sum = (sum & 0xffff) + (sum >> 16);
		ip[10] = (uint8_t)(sum >> 8);
		ip[11] = (uint8_t)sum;
	} else if (ip[0] >> 4 == 6 &&
		   (ip[1] >> 4 & WIRE_ECN_MASK) == WIRE_ECT0) {
		ip[1] |= WIRE_CE << 4;
	} else {
		return;
	}
	net->stats.marked++;
}

static void at_other_switch(struct sim *sim, struct sim_event *ev)
{
	struct sim_frame *f = container_of(ev, struct sim_frame, ev);
	struct sim_net *net = f->net;

	net->sw(net->sw_ctx, f->port, f->bytes, f->len_bytes);
	sim_frame_free(net, f);
}

static void cross(struct sim_port *from, struct sim_port *to,
		  struct sim_frame *f)
{
	struct sim_net *net = from->net;

	if (sim_rand_chance(&from->rand, from->link.faults.mark_ppm))
		sim_net_mark(net, f);
	if (sim_rand_chance(&from->rand, from->link.faults.corrupt_ppm)) {
		net->stats.corrupted++;
		tell_fault(net, f->bytes, f->len_bytes);
		flip_bits(from, f);
	}
	if (net->sw) {
		f->port = from;
		sim_event_init(&f->ev, at_other_switch);
		sim_schedule_in(net->sim, &f->ev,
				from->link.latency_ps + net->switch_ps);
		return;
	}
	f->port = to;
	net->fabric->ops->cross(net->fabric, f, from, to);
}

static struct sim_frame *copy(struct sim_net *net, const struct sim_frame *f)
{
	struct sim_frame *c = frame_alloc(net, f->len_bytes);

	c->len_bytes = f->len_bytes;
	c->from = f->from;
	memcpy(c->bytes, f->bytes, f->len_bytes);
	return c;
}

static struct sim_port *destination(struct sim_net *net,
				    const struct sim_frame *f)
{
	uint8_t ip[16] = {[10] = 0xff, [11] = 0xff};

	if (f->len_bytes < WIRE_ETH_BYTES + WIRE_IP4_BYTES)
		return NULL;
	if (f->bytes[12] == 0x08 && f->bytes[13] == 0x00) {
		memcpy(ip + 12, f->bytes + WIRE_ETH_BYTES + 16, 4);
	} else {
		if (f->len_bytes < WIRE_ETH_BYTES + WIRE_IP6_BYTES)
			return NULL;
		memcpy(ip, f->bytes + WIRE_ETH_BYTES + 24, 16);
	}
	return sim_net_find(net, ip);
}

static void lose(struct sim_net *net, struct sim_frame *f, uint64_t *stat,
		 const char *why)
{
	(*stat)++;
	tell_fault(net, f->bytes, f->len_bytes);
	if (net_trace_on(&net->trace))
		net_trace_frame(&net->trace, sim_now_ps(net->sim), why,
				f->bytes, f->len_bytes);
	sim_frame_free(net, f);
}

void sim_net_lose(struct sim_net *net, struct sim_frame *f)
{
	lose(net, f, &net->stats.lost, "lose");
}

void sim_net_overflow(struct sim_net *net, struct sim_frame *f)
{
	lose(net, f, &net->stats.switch_full, "overflow");
}

void sim_net_route(struct sim_net *net, struct sim_frame *f)
{
	struct sim_port *from = f->port;
	struct sim_port *to = destination(net, f);

	/* Another switch knows ways to where no port is. */
	if (!to && !net->sw) {
		lose(net, f, &net->stats.no_route, "no route");
	} else if (from->down || (to && is_cut(from, to))) {
		lose(net, f, &net->stats.cut, "cut");
	} else if (sim_rand_chance(&from->rand, from->link.faults.loss_ppm)) {
		sim_net_lose(net, f);
	} else {
		if (sim_rand_chance(&from->rand, from->link.faults.dup_ppm)) {
			net->stats.duplicated++;
			cross(from, to, copy(net, f));
		}
		cross(from, to, f);
	}
}

void sim_net_set_switch(struct sim_net *net, sim_net_switch fn, void *ctx)
{
	net->sw = fn;
	net->sw_ctx = ctx;
}

void sim_net_emit(struct sim_port *to, const uint8_t *frame, size_t len_bytes)
{
	struct sim_net *net = to->net;
	const struct sim_link *link = &to->link;
	struct sim_frame *f;

	if (to->down) {
		net->stats.cut++;
		tell_fault(net, frame, len_bytes);
		return;
	}
	if (sim_rand_chance(&to->rand, link->faults.loss_ppm)) {
		net->stats.lost++;
		tell_fault(net, frame, len_bytes);
		return;
	}
	f = frame_alloc(net, len_bytes);
	f->len_bytes = (uint32_t)len_bytes;
	f->port = to;
	f->from = NULL;
	memcpy(f->bytes, frame, len_bytes);
	if (sim_rand_chance(&to->rand, link->faults.corrupt_ppm)) {
		net->stats.corrupted++;
		tell_fault(net, f->bytes, f->len_bytes);
		flip_bits(to, f);
	}
	net_wire_send(&to->emit, f, sim_now_ps(net->sim));
}

struct sim_port *sim_net_port(struct sim_net *net, unsigned index)
{
	return index < net->port_count ? net->ports[index] : NULL;
}

const struct env_addr *sim_port_addr(const struct sim_port *port)
{
	return &port->addr;
}

void sim_port_sent(struct sim_port *port)
{
	ASSERT(port->queued);
	port->queued--;
	if (port->was_full) {
		port->was_full = false;
		port->ops->room(port->ctx);
	}
}

bool sim_port_has_room(const struct sim_port *port)
{
	return !port->link.queue_frames ||
	       port->queued < port->link.queue_frames;
}

struct sim_frame *sim_port_tx_begin(struct sim_port *port, size_t max_bytes)
{
	if (!sim_port_has_room(port)) {
		port->net->stats.queue_full++;
		port->was_full = true;
		return NULL;
	}
	return frame_alloc(port->net, max_bytes);
}

void sim_port_tx_end(struct sim_port *port, struct sim_frame *frame,
		     size_t len_bytes, uint64_t ready_ps)
{
	struct sim_net *net = port->net;

	ASSERT(len_bytes && len_bytes <= frame->room_bytes);
	if (net->tap)
		net->tap(net->tap_ctx, frame->bytes, len_bytes);
	port->queued++;
	port->bytes += len_bytes;
	port->frames++;
	net->stats.sent++;
	frame->len_bytes = (uint32_t)len_bytes;
	frame->port = frame->from = port;
	net->fabric->ops->send(net->fabric, frame, port,
			       destination(net, frame),
			       u64_max(ready_ps, sim_now_ps(net->sim)));
}
