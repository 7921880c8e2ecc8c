/* SPDX-License-Identifier: Apache-2.0 */
/* pFabric's egress queue. It is short by design, so walks are cheap. */
#include "edm_pfabric.h"

#include <stdlib.h>

static uint32_t take(struct edm_pfabric_queue *q,
		     const struct edm_packet *packets, uint32_t place)
{
	uint32_t i = edm_list_take(&q->packets, place);

	q->bytes -= packets[i].wire_bytes;
	return i;
}

uint32_t edm_pfabric_push(struct edm_pfabric_queue *q,
			  struct edm_packet *packets, uint32_t packet)
{
	const uint32_t *item;
	uint32_t dropped = EDM_MSG_NONE;

	edm_list_add(&q->packets, packet);
	item = q->packets.item;
	q->bytes += packets[packet].wire_bytes;
	while (q->bytes > q->limit_bytes) {
		uint32_t worst = 0, i;

		for (i = 1; i < q->packets.count; i++)
			if (packets[item[i]].seq > packets[item[worst]].seq)
				worst = i;
		i = take(q, packets, worst);
		packets[i].next = dropped;
		dropped = i;
	}
	q->bytes_max = u64_max(q->bytes_max, q->bytes);
	return dropped;
}

uint32_t edm_pfabric_pop(struct edm_pfabric_queue *q,
			 const struct edm_packet *packets)
{
	const uint32_t *item = q->packets.item;
	uint32_t best = 0, first;

	if (!q->packets.count)
		return EDM_MSG_NONE;
	for (uint32_t i = 1; i < q->packets.count; i++)
		if (packets[item[i]].seq < packets[item[best]].seq)
			best = i;
	/* Its message may have an earlier packet here, sent when more of the
	 * message was left: that one first, or it would wait longest. */
	first = best;
	for (uint32_t i = 0; i < q->packets.count; i++) {
		const struct edm_packet *p = &packets[item[i]];

		if (p->msg == packets[item[best]].msg &&
		    (uint32_t)p->seq < (uint32_t)packets[item[first]].seq)
			first = i;
	}
	return take(q, packets, first);
}

void edm_pfabric_release(struct edm_pfabric_queue *q)
{
	free(q->packets.item);
}
