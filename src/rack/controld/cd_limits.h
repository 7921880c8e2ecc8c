/* SPDX-License-Identifier: Apache-2.0 */
/* The named limits of a controller. */
#ifndef AQ_CD_LIMITS_H
#define AQ_CD_LIMITS_H

enum {
	CD_NAME_MAX = 32,     /* characters, of nodes, tenants, zones */
	CD_ADDRESS_MAX = 255, /* characters */
	CD_VAULT_MAX = 256,   /* with the NUL */
	CD_NODES_MAX = 128,
	CD_TENANTS_MAX = 256,
	CD_REQUESTS = 50000,	    /* a second, of one tenant */
	CD_STRANGER_REQUESTS = 500, /* ... of an address without a token */
	CD_TOKENS_MAX = 8,	    /* of one tenant */
	CD_NARROW_MAX = 16,	    /* tokens of one tenant that open less */
	CD_TOKEN_PATH_MAX = 255,    /* characters of what they are for */
	CD_ROLE_TOKENS_MAX = 256,   /* of administrators and nodes together */
	CD_NAMES_MAX = 400,	    /* that one node tells, in one beat */
	CD_NAME_TEXT_MAX = 63,	    /* characters of a region's name */
	CD_LIST_NAME_MAX = 31,	    /* characters of a list of tenants' name */
	CD_COPIES_MAX = 16,	    /* places that are asked for at once */
	/* Of a beat: all names, a share of each tenant, and their texts. */
	CD_BEAT_BYTES = 256 << 10,
	CD_GIVEN_MAX = 256,	/* moves that one node tells of */
	CD_WAS_GIVEN_MAX = 512, /* that are remembered of one node */
	CD_LEFT_MAX = 400,	/* files and queues that are named of a node */
	CD_NAMES_SHOWN = 500,	/* rows of an overview */
	CD_EVENTS_MAX = 200,	/* that are remembered */
	CD_CODES_MAX = 32,	/* that nobody has used yet */
	CD_LOOKS_MAX = 128,	/* sessions of pages */
	CD_LOOKS_EACH = 8,	/* by the right of one token */

	CD_HOLD_MS = 1000,    /* a beat waits for orders at most */
	CD_LATE_MS = 1000,    /* and then for the ledger */
	CD_STALL_MS = 4500,   /* a change waits for it; etcd has 4,000 */
	CD_SUSPECT_MS = 3000, /* of silence */
	CD_DOWN_MS = 10000,   /* of silence */
	CD_BROKEN_MS = 1000,  /* after its held request broke: down */
	CD_TICK_MS = 250,
	CD_OPS_MIN_MS = 500,	  /* of which operations are counted */
	CD_CODE_MS = 60000,	  /* until a code ends */
	CD_LOOK_S = 12 * 3600,	  /* until a session ends */
	CD_HISTORY_S = 24 * 3600, /* how far numbers go back */
	CD_PAGE_PORT = 7170,	  /* where the page is served first */
	CD_PAGE_PORTS = 32,	  /* that are tried from there */
	CD_TOKEN_TTL_MAX_S = 366 * 24 * 3600,

	CD_STEP_BYTES = 64 << 20, /* of an allowance beyond what is needed */
	CD_STEP_PART = 8,	  /* but only this part of what is left */
};

#endif
