/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions to the members of one etcd. Any of them will do, so they are asked
 * in turn, each for ETCD_ASK_MS: one that is stopped keeps its connections
 * open, and one that is cut off from the others does not answer either. Who
 * answered last is asked first.
 */
#ifndef AQ_ETCD_CALL_H
#define AQ_ETCD_CALL_H

#include <jansson.h>

#include "ledger.h"

enum {
	ETCD_MEMBERS_MAX = 9,
	ETCD_ADDRESS_MAX = 200, /* with the NUL */
	ETCD_ASK_MS = 500,
};

struct etcd_call;

/* `urls` has commas between http://HOST:PORT or https://HOST:PORT. -EINVAL. */
int etcd_call_open(const char *urls, const struct ledger_place *place,
		   struct etcd_call **out) MUST_CHECK;
void etcd_call_close(struct etcd_call *c); /* NULL is fine */

/*
 * One question, with a body that is taken over. The members are asked once at
 * least, and again until patience_ms are over. -EHOSTDOWN: nobody has answered,
 * and *may_have says whether somebody may have done it all the same (or NULL);
 * else as etcd_answer_status.
 */
int etcd_call_ask(struct etcd_call *c, const char *path, json_t *body,
		  unsigned patience_ms, bool *may_have,
		  json_t **answer) MUST_CHECK;

#endif
