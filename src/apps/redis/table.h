/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table behind the gateway: opened, looked at every second, and found again
 * when it or its rack was gone. Each thread has its own handles of it.
 */
#ifndef AQ_REDIS_TABLE_H
#define AQ_REDIS_TABLE_H

#include "base/base.h"

enum {
	TABLE_LOOK_MS = 1000,
	TABLE_WHY_MAX = 200,
};

enum table_status {
	TABLE_OK,
	TABLE_DEGRADED, /* some of its parts do not answer */
	TABLE_LOST,
};

/* What is known of it. */
struct table_state {
	enum table_status status;
	char why[TABLE_WHY_MAX]; /* unless it is OK */
	uint64_t since_ms;	 /* of this status */
	uint64_t look_ms;	 /* when to look again */
	unsigned misses; /* looks without an answer, one after another */
	bool has_keys;	 /* their number is known */
	uint64_t keys;
	uint64_t losses;
	uint64_t makes; /* how often it was made anew */
	uint64_t finds; /* by any thread, that this one knows of */
};

struct daemon;
struct gateway;

const char *table_status_name(enum table_status s);
/* Opens the table, and makes it if there is none. Waits for another one that is
 * making it, until the daemon shall end. */
int table_open(struct gateway *g, struct daemon *d) MUST_CHECK;
void table_close(struct gateway *g);
/* Looks at it, if it is time. -errno: it is lost, and the gateway is to end. */
int table_turn(struct gateway *g) MUST_CHECK;

#endif
