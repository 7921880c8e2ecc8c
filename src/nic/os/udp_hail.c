/* SPDX-License-Identifier: Apache-2.0 */
/* Answers hails: as many bytes back, to wherever the question came from. */
#include <string.h>

#include "base/hail.h"
#include "udp.h"

#define HAIL_PERIOD_NS 10000000ull

enum {
	HAILS_PER_PERIOD = 64, /* a stranger must not keep us busy */
};

bool udp_hail(struct udp_port *u, uint8_t *payload, size_t len)
{
	struct os_host *h = u->path.host;
	uint64_t now_ns;
	struct hail hail;

	if (!hail_parse(payload, len, HAIL_ASK, &hail))
		return false;
	now_ns = host_now(h);
	if (now_ns - u->hail_since_ns > HAIL_PERIOD_NS) {
		u->hail_since_ns = now_ns;
		u->hail_count = 0;
	}
	if (u->hail_count++ >= HAILS_PER_PERIOD)
		return true;
	hail.kind = HAIL_ANSWER;
	hail.slot = be16_put((uint16_t)h->slot);
	memcpy(payload, &hail, sizeof(hail));
	/* Lost, if it cannot be sent: who asks, asks again. */
	(void)sendto(u->fd, payload, len, MSG_DONTWAIT, &u->rx.from.sa,
		     udp_addr_len(&u->rx.from));
	h->stats->udp_hails++;
	return true;
}
