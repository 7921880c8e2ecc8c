/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a run of the simulation behind the interface of a link model. */
#include <errno.h>
#include <stdlib.h>

#include "edm_fabric.h"
#include "edm_run.h"

struct edm_fabric {
	struct edm_run *run;
	struct edm_result result;
	uint64_t *tag; /* by message slot */
	uint32_t tags;
	edm_fabric_fn deliver;
	void *owner;
};

static void on_done(void *owner, uint32_t msg, uint64_t turn)
{
	struct edm_fabric *f = owner;

	f->deliver(f->owner, f->tag[msg], edm_queue_now(f->run->q));
}

int edm_fabric_create(const struct edm_config *c, edm_fabric_fn deliver,
		      void *owner, struct edm_fabric **out)
{
	struct edm_fabric *f = calloc(1, sizeof(*f));
	int rc;

	if (!f)
		return -ENOMEM;
	f->deliver = deliver;
	f->owner = owner;
	rc = edm_run_create(c, &f->result, &f->run);
	if (rc) {
		free(f);
		return rc;
	}
	f->run->on_done = on_done;
	f->run->owner = f;
	*out = f;
	return 0;
}

void edm_fabric_destroy(struct edm_fabric *f)
{
	if (!f)
		return;
	edm_run_destroy(f->run);
	free(f->tag);
	free(f);
}

int edm_fabric_send(struct edm_fabric *f, uint64_t now_ps, uint16_t src,
		    uint16_t dst, uint32_t bytes, uint64_t tag)
{
	struct edm_arrival a = {
		.at_ps = now_ps, .bytes = bytes, .src = src, .dst = dst};
	uint32_t msg;

	if (src >= f->run->c.nodes || dst >= f->run->c.nodes || src == dst ||
	    !bytes)
		return -EINVAL;
	msg = edm_run_submit(f->run, &a);
	if (msg >= f->tags) {
		uint32_t tags = f->run->msg_size;
		uint64_t *more = realloc(f->tag, tags * sizeof(*more));

		if (!more)
			return -ENOMEM;
		f->tag = more;
		f->tags = tags;
	}
	f->tag[msg] = tag;
	return 0;
}

uint64_t edm_fabric_next_ps(const struct edm_fabric *f)
{
	return edm_queue_next_ps(f->run->q);
}

void edm_fabric_run(struct edm_fabric *f, uint64_t now_ps)
{
	edm_run_until(f->run, now_ps);
}
