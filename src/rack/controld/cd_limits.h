/* SPDX-License-Identifier: Apache-2.0 */
/* The named limits of a controller. */
#ifndef AQ_CD_LIMITS_H
#define AQ_CD_LIMITS_H

enum {
	CD_NAME_MAX = 32,     /* characters, of nodes, tenants, zones */
	CD_ADDRESS_MAX = 255, /* characters */
	CD_NODES_MAX = 128,
	CD_TENANTS_MAX = 256,
	CD_TOKENS_MAX = 8,	  /* of one tenant */
	CD_ROLE_TOKENS_MAX = 256, /* of administrators and nodes together */
	CD_NAMES_MAX = 400,	  /* that one node tells, in one beat */
	CD_NAME_TEXT_MAX = 63,	  /* characters of a region's name */
	CD_LIST_NAME_MAX = 31,	  /* characters of a list of tenants' name */
	CD_COPIES_MAX = 16,	  /* places that are asked for at once */
	/* Of a beat: all names, a share of each tenant, and their texts. */
	CD_BEAT_BYTES = 256 << 10,

	CD_HOLD_MS = 1000,    /* a beat waits for orders at most */
	CD_SUSPECT_MS = 3000, /* of silence */
	CD_DOWN_MS = 10000,   /* of silence */
	CD_BROKEN_MS = 1000,  /* after its held request broke: down */
	CD_TICK_MS = 250,
	CD_TOKEN_TTL_MAX_S = 366 * 24 * 3600,

	CD_STEP_BYTES = 64 << 20, /* of an allowance beyond what is needed */
	CD_STEP_PART = 8,	  /* but only this part of what is left */
};

#endif
