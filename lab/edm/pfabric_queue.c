/* SPDX-License-Identifier: Apache-2.0 */
/* pFabric's egress queue. It is short by design, so walks are cheap. */
#include "edm_pfabric.h"

#include <stdlib.h>

static uint32_t take(struct edm_pfabric_queue *q,
		     const struct edm_packet *packets, uint32_t place)
{
	uint32_t i = q->item[place];

	q->item[place] = q->item[--q->count];
	q->bytes -= packets[i].wire_bytes;
	return i;
}

uint32_t edm_pfabric_push(struct edm_pfabric_queue *q,
			  struct edm_packet *packets, uint32_t packet)
{
	uint32_t dropped = EDM_MSG_NONE;

	if (q->count == q->size) {
		q->size = q->size ? 2 * q->size : 16;
		q->item = realloc(q->item, q->size * sizeof(*q->item));
		ASSERT(q->item);
	}
	q->item[q->count++] = packet;
	q->bytes += packets[packet].wire_bytes;
	while (q->bytes > q->limit_bytes) {
		uint32_t worst = 0, i;

		for (i = 1; i < q->count; i++)
			if (packets[q->item[i]].seq >
			    packets[q->item[worst]].seq)
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
	uint32_t best = 0, first;

	if (!q->count)
		return EDM_MSG_NONE;
	for (uint32_t i = 1; i < q->count; i++)
		if (packets[q->item[i]].seq < packets[q->item[best]].seq)
			best = i;
	/* Its message may have an earlier packet here, sent when more of the
	 * message was left: that one first, or it would wait longest. */
	first = best;
	for (uint32_t i = 0; i < q->count; i++) {
		const struct edm_packet *p = &packets[q->item[i]];

		if (p->msg == packets[q->item[best]].msg &&
		    (uint32_t)p->seq < (uint32_t)packets[q->item[first]].seq)
			first = i;
	}
	return take(q, packets, first);
}

void edm_pfabric_release(struct edm_pfabric_queue *q)
{
	free(q->item);
}
