/* SPDX-License-Identifier: Apache-2.0 */
/* What a link is to this room. */
#ifndef AQ_CLIENT_LINK_PRIV_H
#define AQ_CLIENT_LINK_PRIV_H

#include "client_priv.h"
#include "link.h"

struct client_link_inside {
	struct client_link link; /* what its user sees */
	struct aq_rack *rack;
	bool owns_cq;
	bool is_beating;
	struct client_bond bond;
};

#endif
