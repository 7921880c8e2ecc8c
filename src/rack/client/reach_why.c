/* SPDX-License-Identifier: Apache-2.0 */
/* The reason in the words of an operation that was not answered. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/config.h"
#include "client_priv.h"
#include "hail_ask.h"
#include "reach.h"

enum {
	/* Five sizes of packets and one of them again, the port, and our own
	 * port. */
	WAITS = 8,
	TRY_MS_MIN = 10, /* less says nothing */
};

bool client_reach_is_udp(const struct aq_rack *rack)
{
	const char *port = config_string(rack->config, "nic", "port");

	return rack->verbs && rack->verbs != &rack->system_verbs &&
	       (strcmp(port, "auto") == 0 || strcmp(port, "udp") == 0);
}

/* What another process of this machine does is no matter of networks. */
static bool is_here(const char *peer)
{
	union client_hail_addr addr;
	char name[16];
	unsigned mtu;

	return !client_hail_addr_parse(peer, 0, &addr) ||
	       client_hail_interface(&addr, name, &mtu);
}

bool client_link_may_map(const struct client_link *link)
{
	const struct aq_rack *rack =
		container_of(link, struct client_link_inside, link)->rack;
	const char *port = config_string(rack->config, "nic", "port");

	if (!rack->verbs || rack->verbs == &rack->system_verbs)
		return false;
	return strcmp(port, "cable") == 0 ||
	       (strcmp(port, "auto") == 0 && is_here(link->peer));
}

static void hint(const char *peer, char words[CLIENT_REACH_WORDS])
{
	(void)snprintf(words, CLIENT_REACH_WORDS,
		       "; `aquifer doctor %s` may say why", peer);
}

void client_link_hint(const struct client_link *link,
		      char words[CLIENT_REACH_WORDS])
{
	words[0] = '\0';
	if (link->peer[0] && !is_here(link->peer))
		hint(link->peer, words);
}

/* Whether a cause was found, or all was looked at. */
static bool find(const struct config *config, const char *peer,
		 uint32_t budget_ms, char words[CLIENT_REACH_WORDS])
{
	const struct client_hail_patience patience = {
		.tries = 1,
		.try_ms = u32_min(budget_ms, CLIENT_REACH_MS) / WAITS};
	bool can_wait = patience.try_ms >= TRY_MS_MIN;
	struct client_reach_result r = {0};
	struct client_reach *way;

	if (is_here(peer) || client_reach_create(config, peer, &patience, &way))
		return true;
	client_reach_look(way, CLIENT_REACH_ROUTE, &r);
	if (can_wait && !r.is_cause)
		client_reach_look(way, CLIENT_REACH_PORT, &r);
	if (can_wait && !r.is_cause)
		client_reach_look(way, CLIENT_REACH_MTU, &r);
	client_reach_destroy(way);
	if (can_wait && !r.is_cause)
		client_reach_own_port(config, &patience, &r);
	if (r.is_cause)
		(void)snprintf(words, CLIENT_REACH_WORDS, "; %.190s: %.190s",
			       r.found, r.fix);
	else if (can_wait)
		(void)snprintf(words, CLIENT_REACH_WORDS,
			       "; the NIC at %s can be reached, so the node is "
			       "busy, or a firewall here drops what it sends "
			       "to UDP 4791",
			       peer);
	else
		hint(peer, words);
	return can_wait || r.is_cause;
}

void client_reach_why(struct aq_rack *rack, uint32_t node, const char *peer,
		      uint32_t budget_ms, char words[CLIENT_REACH_WORDS])
{
	struct client_why *why = &rack->why[node];
	uint64_t now_ms = clock_mono_ms();
	bool is_fresh;

	words[0] = '\0';
	if (!peer[0])
		return;
	pthread_mutex_lock(&rack->lock);
	is_fresh = why->until_ms > now_ms;
	if (is_fresh)
		memcpy(words, why->words, CLIENT_REACH_WORDS);
	pthread_mutex_unlock(&rack->lock);
	if (is_fresh || !find(rack->config, peer, budget_ms, words))
		return;
	pthread_mutex_lock(&rack->lock);
	memcpy(why->words, words, CLIENT_REACH_WORDS);
	why->until_ms = clock_mono_ms() + CLIENT_REACH_AGAIN_MS;
	pthread_mutex_unlock(&rack->lock);
}
