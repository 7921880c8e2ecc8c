/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ten TCP flows out of the application's machine to a third one with a 25 Gb/s
 * NIC, as one stream of full frames with a window. Acknowledgements are frames,
 * too, so they take their share of the way back; the sender counts them when
 * they would arrive on an idle way. No priorities: RDMA and TCP share the link
 * first come, first served.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fig_priv.h"
#include "sim/net.h"

enum {
	DATA_BYTES = 1514, /* a frame without its checksum */
	PAYLOAD_BYTES = 1448,
	ACK_BYTES = 66,
	WINDOW_BYTES = 10 * 64 << 10,
	ETH_BYTES = 14,
	IP4_SRC_AT = ETH_BYTES + 12,
	IP4_DST_AT = ETH_BYTES + 16,
	PROTO_AT = ETH_BYTES + 9,
	PROTO_TCP = 6,
};

#define RATE_BITS_PER_S 25000000000ull
#define ACK_WAY_PS	(2 * SIM_US) /* cables and switch, idle */

struct fig_tcp {
	struct fig *fig;
	struct sim_net *net;
	struct sim_port *from, *to;
	struct sim_event pump;
	struct env_addr addr;
	uint64_t sent, delivered, acked; /* payload bytes */
	uint8_t near_ip[4];
};

static void fill(uint8_t *f, const uint8_t *src, const uint8_t *dst,
		 size_t bytes)
{
	memset(f, 0, bytes);
	f[12] = 0x08; /* IPv4 */
	f[ETH_BYTES] = 0x45;
	f[ETH_BYTES + 2] = (uint8_t)((bytes - ETH_BYTES) >> 8);
	f[ETH_BYTES + 3] = (uint8_t)(bytes - ETH_BYTES);
	f[ETH_BYTES + 8] = 64;
	f[PROTO_AT] = PROTO_TCP;
	memcpy(f + IP4_SRC_AT, src, 4);
	memcpy(f + IP4_DST_AT, dst, 4);
}

static void send_frame(struct fig_tcp *t, struct sim_port *port,
		       const uint8_t *src, const uint8_t *dst, size_t bytes)
{
	struct sim_frame *f = sim_port_tx_begin(port, bytes);

	if (!f)
		return;
	fill(f->bytes, src, dst, bytes);
	sim_port_tx_end(port, f, bytes, sim_now_ps(t->fig->sim));
}

static void pump(struct sim *sim, struct sim_event *ev)
{
	struct fig_tcp *t = container_of(ev, struct fig_tcp, pump);

	t->acked = t->delivered;
	while (t->sent - t->acked + PAYLOAD_BYTES <= WINDOW_BYTES) {
		t->sent += PAYLOAD_BYTES;
		send_frame(t, t->from, t->near_ip, t->addr.ip + 12, DATA_BYTES);
	}
}

static void far_rx(void *ctx, struct sim_frame *f)
{
	struct fig_tcp *t = ctx;
	bool is_data = f->len_bytes == DATA_BYTES && f->bytes[PROTO_AT] == 6;

	sim_frame_free(t->net, f);
	if (!is_data)
		return;
	t->delivered += PAYLOAD_BYTES;
	if (t->delivered / PAYLOAD_BYTES % 2)
		return;
	/* Every second one is acknowledged. */
	send_frame(t, t->to, t->addr.ip + 12, t->near_ip, ACK_BYTES);
	if (!sim_event_is_set(&t->pump))
		sim_schedule_in(t->fig->sim, &t->pump, ACK_WAY_PS);
}

static void far_room(void *ctx)
{
}

static const struct sim_port_ops far_ops = {.rx = far_rx, .room = far_room};

int fig_tcp_start(struct fig *fig)
{
	struct fig_tcp *t = calloc(1, sizeof(*t));
	struct sim_link link = {.latency_ps = 10 * SIM_NS,
				.bits_per_s = RATE_BITS_PER_S};
	int err;

	if (!t)
		return -ENOMEM;
	fig->tcp = t;
	t->fig = fig;
	t->net = rig_stage_net(fig->stage);
	t->from = sim_host_port(fig->host->sim_host);
	memcpy(t->near_ip, fig->host->gid.raw + 12, 4);
	t->addr = (struct env_addr){.ip = {[10] = 0xff, 0xff, 10, 0, 200, 1},
				    .mac = {2, 0, 0, 0, 200, 1}};
	err = sim_port_attach(t->net, &t->addr, &link, &far_ops, t, &t->to);
	if (err)
		return err;
	sim_event_init(&t->pump, pump);
	sim_schedule_in(fig->sim, &t->pump, 0);
	return 0;
}

uint64_t fig_tcp_bytes(const struct fig *fig)
{
	return fig->tcp->delivered;
}

void fig_tcp_release(struct fig *fig)
{
	free(fig->tcp);
}
