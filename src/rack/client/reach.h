/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why the NIC of another machine cannot be reached, and the command that helps.
 * `aquifer doctor` shows all of it; operations that were not answered have the
 * first reason in their error's words. Only for soft NICs that reach each other
 * by UDP.
 */
#ifndef AQ_CLIENT_REACH_H
#define AQ_CLIENT_REACH_H

#include "base/base.h"

struct aq_rack;
struct client_hail_patience;
struct config;

enum client_reach_state {
	CLIENT_REACH_OK,
	CLIENT_REACH_WARN,    /* works, but not as well as it could */
	CLIENT_REACH_MISSING, /* does not work */
};

struct client_reach_result {
	enum client_reach_state state;
	bool is_cause; /* by itself a reason why nothing is heard */
	char found[320];
	char fix[320]; /* a command, or empty */
};

/* In the order in which they have to be looked at. */
enum client_reach_row {
	CLIENT_REACH_ROUTE,
	CLIENT_REACH_PORT,
	CLIENT_REACH_MTU,
	CLIENT_REACH_ROWS,
};

/* The way to one host. */
struct client_reach;

/* `host` is an address or a name. -ENOENT: no host has this name. */
int client_reach_create(const struct config *config, const char *host,
			const struct client_hail_patience *patience,
			struct client_reach **out) MUST_CHECK;
void client_reach_destroy(struct client_reach *p);
void client_reach_look(struct client_reach *p, enum client_reach_row row,
		       struct client_reach_result *out);

/* Our own end: UDP port 4791 of the NIC's address, and its interface's MTU. */
void client_reach_own_port(const struct config *config,
			   const struct client_hail_patience *patience,
			   struct client_reach_result *out);
void client_reach_own_mtu(const struct config *config,
			  struct client_reach_result *out);

enum {
	CLIENT_REACH_WORDS = 400,
	CLIENT_REACH_MS = 2000,	      /* so long client_reach_why may take */
	CLIENT_REACH_AGAIN_MS = 5000, /* so long its words hold */
};

/* Whether hails make sense in this rack: its NICs may reach each other by UDP.
 * The NIC is open. */
bool client_reach_is_udp(const struct aq_rack *rack);

/*
 * Why nothing was heard of the NIC at `peer` ("": hails make no sense): "; "
 * and a sentence, or "" where nothing can be said. It takes at most budget_ms
 * and CLIENT_REACH_MS; with a small budget only what needs no packets is looked
 * at. One look every CLIENT_REACH_AGAIN_MS; in between the words are the same.
 */
void client_reach_why(struct aq_rack *rack, uint32_t node, const char *peer,
		      uint32_t budget_ms, char words[CLIENT_REACH_WORDS]);

#endif
