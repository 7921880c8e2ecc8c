/* SPDX-License-Identifier: Apache-2.0 */
/* A job's way: its ends in words, and what becomes of it where a connection
 * fails. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/size.h"
#include "traverse_priv.h"

uint64_t job_wr_id(const struct aq_walks *w, const struct job *j)
{
	return (uint64_t)j->generation << 32 | (uint64_t)(j - w->job);
}

void job_posted(struct job *j, struct lane *lane)
{
	j->state = JOB_POSTED;
	lane->busy++;
}

void job_go(struct aq_walks *w, struct job *j)
{
	w->until_ns = j->deadline_ns;
	if (j->result.where == AQ_WALK_HERE)
		here_go(w, j);
	else
		there_go(w, j);
}

/* ---- ends ---------------------------------------------------------------- */

void job_end(struct aq_walks *w, struct job *j, int err)
{
	if (err)
		snprintf(j->words, sizeof(j->words),
			 "walk %s on region %s: %s%s",
			 j->walk->program->image.name, j->place->shape.name,
			 error_last(),
			 j->has_stored && err != -EFAULT && err != -ELOOP
				 ? "; what it stores was done at most once"
				 : "");
	job_pad_fill(j);
	if (j->pad)
		memcpy(j->pad, job_pad(j), j->pad_bytes);
	j->result.err = err;
	j->state = JOB_ENDED;
	w->ended++;
}

void job_loop(struct aq_walks *w, struct job *j)
{
	job_end(w, j,
		error_set(-ELOOP,
			  "it did not end within %u nodes; its pointers may "
			  "form a circle",
			  j->walk->iterations));
}

bool job_is_late(struct aq_walks *w, struct job *j)
{
	if (client_keep_now_ns(w->rack) <= j->deadline_ns)
		return false;
	job_end(w, j,
		error_set(-ETIMEDOUT,
			  "it visited %llu nodes and did not end within the "
			  "rack's deadline of %u ms",
			  (unsigned long long)j->result.iterations,
			  aq_rack_deadline(w->rack)));
	return true;
}

void job_fault(struct aq_walks *w, struct job *j)
{
	const struct client_map *m = &j->place->shape.map;
	uint64_t at = job_window(j);
	uint32_t len = j->walk->program->image.load_bytes;
	int err;

	if (at > m->size_bytes || len > m->size_bytes - at)
		err = error_set(-EFAULT,
				"pointer %#" PRIx64
				" leads out of the region, which has %s",
				j->result.at, SIZE_TEXT(m->size_bytes));
	else if (client_map_find(m, at, len).len_bytes != len)
		err = error_set(-EFAULT,
				"the node at pointer %#" PRIx64
				" crosses a stripe of %s",
				j->result.at,
				SIZE_TEXT(1ull << m->stripe_shift));
	else
		err = error_set(-EFAULT,
				"the node at pointer %#" PRIx64
				" has a value that the walk does not allow",
				j->result.at);
	job_end(w, j, err);
}

/* ---- failures of lanes --------------------------------------------------- */

static bool has_time(const struct aq_walks *w, const struct job *j)
{
	return client_keep_now_ns(w->rack) < j->deadline_ns;
}

static void retry_later(struct aq_walks *w, struct job *j)
{
	j->state = JOB_RETRY;
	w->retries++;
}

static int failure(const struct job *j, int err)
{
	const char *node = client_link_node_name(j->lane->link);
	char why[CLIENT_REACH_WORDS] = "";

	switch (err) {
	case -ESTALE:
		return error_set(err, "node %s refused the key of the region",
				 node);
	case -EHOSTDOWN:
		if (j->is_forwarded)
			return error_set(err,
					 "node %s does not answer, or one that "
					 "the switch carried it on to",
					 node);
		client_link_why(j->lane->link, why);
		return error_set(err, "node %s does not answer%s", node, why);
	case -EREMOTEIO:
		return error_set(err, "node %s failed it; look at its log",
				 node);
	default:
		return error_set(err, "node %s cannot be asked: %s", node,
				 strerror(-err));
	}
}

/* A request that was refused (-ESTALE) had no effect. After other failures it
 * may have been executed all the same, also if the lane broke by another's
 * request (-ECANCELED); only walks that do not store bear to be repeated. */
void job_failed(struct aq_walks *w, struct job *j, int err)
{
	bool is_safe = err == -ESTALE || !j->has_stored ||
		       (err == -ECANCELED && j->lane->has_refused);

	/* What only followed another failure has that one's reason. */
	if (!j->lane->err || j->lane->err == -ECANCELED)
		j->lane->err = err;
	if (err == -ECANCELED)
		err = j->lane->err == -ECANCELED ? -EHOSTDOWN : j->lane->err;
	/* Perhaps another node is the reason: asked one after the other, they
	 * will show which. */
	if (j->is_forwarded && err == -EHOSTDOWN)
		j->stays = true;
	else
		j->attempts++;
	if (is_safe && (err == -ESTALE || err == -EHOSTDOWN) &&
	    j->attempts < TRAVERSE_ATTEMPTS && has_time(w, j))
		retry_later(w, j);
	else
		job_end(w, j, failure(j, err));
}

/* That is no attempt of its own: a walk over several nodes may find the keys of
 * all of them dead, and looks at the region once. */
void job_wait(struct aq_walks *w, struct job *j)
{
	int err = j->lane->err == -ECANCELED ? -EHOSTDOWN : j->lane->err;

	if ((err == -ESTALE || err == -EHOSTDOWN) && has_time(w, j))
		retry_later(w, j);
	else
		job_end(w, j, failure(j, err));
}

void job_no_lane(struct aq_walks *w, struct job *j, struct lane *lane, int err)
{
	j->lane = lane;
	if (err == -EFAULT)
		job_fault(w, j);
	else if (err == -ESTALE && ++j->attempts < TRAVERSE_ATTEMPTS &&
		 has_time(w, j))
		retry_later(w, j);
	else
		job_end(w, j, err);
}

/* A request with a key that is dead, or on a connection that is: the region is
 * looked at again, once nobody uses the lane, unless others have done it. */
void job_retry(struct aq_walks *w, struct job *j)
{
	bool is_new = j->lane->link && !j->lane->err;
	struct place *p = j->place;
	int err = 0;

	if (j->lane->busy && !is_new)
		return;
	w->retries--;
	if (!is_new)
		err = client_keep_refresh(p->region, j->deadline_ns);
	if (!err && !is_new && j->lane->link)
		lane_close(j->lane);
	if (!err)
		err = place_get(w, p->region, &p);
	j->lane = NULL;
	j->piece = NO_PIECE;
	if (err)
		job_end(w, j, err);
	else
		job_go(w, j);
}

/* Nothing is heard of the lane any more: its requests are forgotten, and
 * nothing writes to their memory when the link is closed. */
static void give_up(struct aq_walks *w, struct lane *lane)
{
	char words[CLIENT_REACH_WORDS + 64];
	int err = 0;

	for (uint32_t i = 0; i < w->depth; i++) {
		struct job *j = &w->job[i];

		if (j->state != JOB_POSTED || j->lane != lane)
			continue;
		lane->busy--;
		j->generation++;
		if (!err)
			err = failure(j, -EHOSTDOWN);
		snprintf(words, sizeof(words), "%s", error_last());
		job_end(w, j, error_set(-EHOSTDOWN, "%s", words));
	}
	lane->err = -EHOSTDOWN;
	lane_close(lane);
}

/* Completions may never come where a node was stopped or cut off. */
void jobs_look_for_silence(struct aq_walks *w)
{
	uint64_t now_ns = client_keep_now_ns(w->rack);

	if (now_ns - w->looked_ns < TRAVERSE_LOOK_MS * 1000000ull)
		return;
	w->looked_ns = now_ns;
	for (uint32_t i = 0; i < w->depth; i++) {
		struct job *j = &w->job[i];

		if (j->state == JOB_POSTED &&
		    (now_ns > j->deadline_ns ||
		     client_link_is_lost(j->lane->link)))
			give_up(w, j->lane);
	}
}
