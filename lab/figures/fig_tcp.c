/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ten TCP flows out of the application's machine to a third one with a 25 Gb/s
 * NIC, as one stream of full frames with the window of ten. Acknowledgements
 * are frames, too, and wait where others do. Nothing is lost: queues have no
 * end, and the window is less than what they would hold.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fig_priv.h"
#include "offload_costs.h"
#include "sim/model.h"
#include "sim/model_host.h"
#include "sim/net.h"

enum {
	DATA_BYTES = 1514, /* a frame without its checksum */
	PAYLOAD_BYTES = 1448,
	ACK_BYTES = 66,
	ETH_BYTES = 14,
	IP4_SRC_AT = ETH_BYTES + 12,
	IP4_DST_AT = ETH_BYTES + 16,
	PROTO_AT = ETH_BYTES + 9,
	PROTO_TCP = 6,
	URGENT = 32 << 2, /* a code point, in the byte behind the version */
	COUNT_AT = ETH_BYTES + 40, /* in an acknowledgement: bytes so far */
};

struct fig_tcp {
	struct fig *fig;
	struct sim_net *net;
	struct sim_port *from, *to;
	struct sim_event pump;
	struct env_addr addr;
	uint64_t sent, delivered, acked; /* payload bytes */
	uint64_t packets;		 /* at the application's machine */
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
		       const uint8_t *src, const uint8_t *dst, size_t bytes,
		       uint64_t at_ps)
{
	struct sim_frame *f = sim_port_tx_begin(port, bytes);

	if (!f)
		return;
	fill(f->bytes, src, dst, bytes);
	if (bytes == ACK_BYTES && t->fig->cfg.acks_first)
		f->bytes[ETH_BYTES + 1] = URGENT;
	memcpy(f->bytes + COUNT_AT, &t->delivered, sizeof(t->delivered));
	sim_port_tx_end(port, f, bytes, at_ps);
}

static void pump(struct sim *sim, struct sim_event *ev)
{
	struct fig_tcp *t = container_of(ev, struct fig_tcp, pump);

	uint64_t at_ps;

	while (t->sent - t->acked + PAYLOAD_BYTES <=
	       offload_costs.tcp_window_bytes) {
		if (!sim_model_host_take(t->fig->host->model,
					 t->fig->cfg.rdma_first, &at_ps)) {
			sim_schedule_at(sim, &t->pump, at_ps);
			return;
		}
		t->sent += PAYLOAD_BYTES;
		t->packets++;
		send_frame(t, t->from, t->near_ip, t->addr.ip + 12, DATA_BYTES,
			   at_ps);
	}
}

static void near_rx(void *ctx, const uint8_t *frame, size_t len_bytes)
{
	struct fig_tcp *t = ctx;

	t->packets++;
	memcpy(&t->acked, frame + COUNT_AT, sizeof(t->acked));
	if (!sim_event_is_set(&t->pump))
		sim_schedule_in(t->fig->sim, &t->pump, 0);
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
	send_frame(t, t->to, t->addr.ip + 12, t->near_ip, ACK_BYTES,
		   sim_now_ps(t->fig->sim));
}

static void far_room(void *ctx)
{
}

static const struct sim_port_ops far_ops = {.rx = far_rx, .room = far_room};

int fig_tcp_start(struct fig *fig)
{
	struct fig_tcp *t = calloc(1, sizeof(*t));
	struct sim_link link = {.latency_ps = model_connectx5.cable_ps,
				.bits_per_s =
					offload_costs.tcp_gbps * 1000000000};
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
	sim_host_set_other(fig->host->sim_host, near_rx, t);
	sim_event_init(&t->pump, pump);
	sim_schedule_in(fig->sim, &t->pump, 0);
	return 0;
}

uint64_t fig_tcp_bytes(const struct fig *fig)
{
	return fig->tcp->delivered;
}

uint64_t fig_tcp_packets(const struct fig *fig)
{
	return fig->tcp->packets;
}

void fig_tcp_release(struct fig *fig)
{
	free(fig->tcp);
}
