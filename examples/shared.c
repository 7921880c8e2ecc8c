/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that machines share as processes of one machine do: a counter and a
 * message, with plain stores and atomics, at the same address everywhere. Run
 * it on several machines. Needs a rack with shared memory (aquifer-shared(1)):
 *
 *	aquifer shared create example 1M
 *	cc shared.c $(pkg-config --cflags --libs aquifer) -o shared && ./shared
 */
#include <aquifer/shared.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

struct board {
	_Atomic unsigned visits;
	_Atomic unsigned lock;
	char message[64]; /* of who came last; under the lock */
};

static void visit(struct board *b)
{
	unsigned n = atomic_fetch_add(&b->visits, 1) + 1;

	/* A lock whose holder only writes a line: to wait for it is short. */
	while (atomic_exchange(&b->lock, 1))
		(void)usleep(100);
	if (b->message[0])
		printf("the last visitor wrote: %s\n", b->message);
	(void)snprintf(b->message, sizeof(b->message), "I was number %u", n);
	atomic_store(&b->lock, 0);
	printf("visit %u\n", n);
}

int main(void)
{
	struct aq_shared *shared;
	struct aq_rack *rack;
	int err = aq_rack_open(NULL, &rack);

	if (!err) {
		err = aq_shared_open(rack, "example", 0, &shared);
		if (!err) {
			visit(aq_shared_addr(shared));
			/* Our death loses none of it from now on. */
			err = aq_shared_flush(shared, 0, sizeof(struct board));
			aq_shared_close(shared);
		}
	}
	if (err)
		fprintf(stderr, "%s\n", aq_last_error());
	aq_rack_close(err ? NULL : rack);
	return err != 0;
}
