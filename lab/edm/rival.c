/* SPDX-License-Identifier: Apache-2.0 */
/* Packets, links and egress ports of the rival fabrics. */
#include "edm_rival.h"

#include <stdlib.h>

enum {
	PACKETS_FIRST = 1024,
	LIST_FIRST = 8,
};

void *edm_rival_create(struct edm_run *run, size_t bytes, void **out)
{
	struct edm_rival *r = calloc(1, bytes);

	if (!r)
		return NULL;
	*out = r;
	r->run = run;
	r->nodes = run->c.nodes;
	r->packet_size = PACKETS_FIRST;
	r->packet_used = EDM_PACKET_NONE + 1;
	edm_path_init(&r->path, &run->c);
	r->up = calloc(r->nodes, sizeof(*r->up));
	r->down = calloc(r->nodes, sizeof(*r->down));
	r->packet = malloc(PACKETS_FIRST * sizeof(*r->packet));
	return r->up && r->down && r->packet ? r : NULL;
}

void *edm_rival_array(struct edm_rival *r, size_t count, size_t bytes)
{
	ASSERT(r->array_count < EDM_RIVAL_ARRAYS_MAX);
	return r->array[r->array_count++] = calloc(count, bytes);
}

void edm_rival_destroy(void *proto)
{
	struct edm_rival *r = proto;

	while (r->array_count)
		free(r->array[--r->array_count]);
	free(r->up);
	free(r->down);
	free(r->packet);
	free(r);
}

void edm_rival_report(void *proto, struct edm_result *out)
{
	const struct edm_rival *r = proto;
	uint64_t block_ps = edm_block_ps(r->run->c.gbps);

	out->egress_blocks_max = (r->queue_max_ps + block_ps - 1) / block_ps;
	out->drops = r->drops;
	out->marks = r->marks;
	out->pauses = r->pauses;
	out->timeouts = r->timeouts;
	out->grants = r->grants;
}

uint32_t edm_rival_packet(struct edm_rival *r)
{
	uint32_t i = r->packet_free;

	if (i != EDM_PACKET_NONE) {
		r->packet_free = r->packet[i].next;
	} else {
		if (r->packet_used == r->packet_size) {
			r->packet_size *= 2;
			r->packet = realloc(
				r->packet, r->packet_size * sizeof(*r->packet));
			ASSERT(r->packet);
		}
		i = r->packet_used++;
	}
	r->packet[i] = (struct edm_packet){.next = EDM_PACKET_NONE};
	return i;
}

void edm_rival_packet_put(struct edm_rival *r, uint32_t packet)
{
	r->packet[packet].next = r->packet_free;
	r->packet_free = packet;
}

uint32_t edm_rival_part(struct edm_rival *r, uint32_t msg, bool request)
{
	uint32_t i = edm_rival_packet(r);

	r->packet[i].msg = msg;
	r->packet[i].part = request ? EDM_PART_REQUEST : EDM_PART_DATA;
	r->packet[i].bytes = edm_rival_part_bytes(&r->run->msg[msg], request);
	return i;
}

void edm_fifo_push(struct edm_rival *r, struct edm_fifo *f, uint32_t packet)
{
	r->packet[packet].next = EDM_PACKET_NONE;
	if (f->head == EDM_PACKET_NONE)
		f->head = packet;
	else
		r->packet[f->tail].next = packet;
	f->tail = packet;
}

uint32_t edm_fifo_pop(struct edm_rival *r, struct edm_fifo *f)
{
	uint32_t i = f->head;

	f->head = r->packet[i].next;
	return i;
}

void edm_list_add(struct edm_list *l, uint32_t item)
{
	if (l->count == l->size) {
		l->size = l->size ? 2 * l->size : LIST_FIRST;
		l->item = realloc(l->item, l->size * sizeof(*l->item));
		ASSERT(l->item);
	}
	l->item[l->count++] = item;
}

uint32_t edm_list_take(struct edm_list *l, uint32_t place)
{
	uint32_t item = l->item[place];

	l->item[place] = l->item[--l->count];
	return item;
}

void edm_rival_send(struct edm_rival *r, uint32_t packet, int kind)
{
	struct edm_packet *p = &r->packet[packet];
	uint64_t start = edm_pipe_send(&r->up[p->src], edm_rival_now(r),
				       p->wire_bytes * r->path.byte_ps);

	edm_run_push(r->run, start + r->path.link_ps + r->path.switch_ps, kind,
		     p->dst, packet, 0);
}

void edm_rival_request(struct edm_rival *r, uint32_t msg, int kind)
{
	const struct edm_msg *m = &r->run->msg[msg];
	uint32_t i = edm_rival_part(r, msg, true);

	r->packet[i].src = m->src;
	r->packet[i].dst = m->dst;
	r->packet[i].wire_bytes = edm_path_bytes(&r->path, r->packet[i].bytes);
	edm_rival_send(r, i, kind);
}

uint64_t edm_rival_forward(struct edm_rival *r, uint32_t packet, int kind)
{
	struct edm_packet *p = &r->packet[packet];
	uint64_t now = edm_rival_now(r);
	uint64_t length_ps = p->wire_bytes * r->path.byte_ps;
	uint64_t start = edm_pipe_send(&r->down[p->dst], now, length_ps);

	r->queue_max_ps = u64_max(r->queue_max_ps, start - now);
	edm_run_push(
		r->run,
		start + length_ps + r->path.link_ps + r->path.receive_ps +
			(p->part == EDM_PART_REQUEST ? r->path.send_ps : 0),
		kind, p->dst, packet, 0);
	return start - now;
}

void edm_rival_got(struct edm_rival *r, uint32_t msg, uint32_t bytes)
{
	struct edm_msg *m = &r->run->msg[msg];

	m->got_bytes[0] += bytes;
	if (m->got_bytes[0] < m->bytes)
		return;
	edm_run_done(r->run, msg, false);
	edm_run_forget(r->run, msg);
}

uint32_t edm_rival_take(struct edm_rival *r, uint32_t packet)
{
	uint32_t msg = r->packet[packet].msg;

	edm_rival_packet_put(r, packet);
	return msg;
}

void edm_rival_take_data(struct edm_rival *r, uint32_t packet)
{
	uint32_t bytes = r->packet[packet].bytes;

	edm_rival_got(r, edm_rival_take(r, packet), bytes);
}

uint64_t edm_rival_lead_ps(const struct edm_config *c)
{
	struct edm_path p;

	edm_path_init(&p, c);
	return p.send_ps;
}
