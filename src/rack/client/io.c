/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Synchronous operations: cut into pieces, staged, posted, waited for. Whatever
 * goes wrong, nothing writes to the caller's memory after the return, because
 * only the staging memory is registered.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "client_priv.h"
#include "reach.h"

/* One call of the application. */
struct job {
	struct aq_region *region;
	struct client_thread *thread;
	struct client_view *view;
	enum client_op_kind kind;
	uint64_t offset;
	uint8_t *in;	    /* READ and atomics: where the bytes go */
	const uint8_t *out; /* WRITE: where they come from */
	size_t len_bytes;
	uint64_t compare_add;
	uint64_t swap;
	uint64_t deadline_ns;
	const struct client_conn *silent; /* did not answer; or NULL */
	bool is_posted;			  /* some of it, in this attempt */
};

/* What a slot of the staging memory is used for. */
struct slot {
	struct client_conn *conn; /* NULL: free */
	size_t at;		  /* in the caller's buffer */
	uint32_t len_bytes;
};

/* The window of requests under way. */
struct window {
	struct slot slot[CLIENT_SLOT_COUNT];
	unsigned busy;
	int err; /* the first real error */
};

static uint8_t *staging_of(const struct job *j, uint32_t slot)
{
	return j->thread->staging + (size_t)slot * CLIENT_SLOT_BYTES;
}

static const char *failure_words(int err)
{
	switch (err) {
	case -ESTALE:
		return "refused the key of the region";
	case -EREMOTEIO:
		return "failed the operation; look at its log";
	case -EIO:
		return "cannot be asked: the NIC here refused the request";
	default:
		return "does not answer";
	}
}

/* An error that only follows another one does not hide it. */
static void note_failure(struct job *j, struct window *w,
			 const struct client_conn *conn, int err)
{
	if (w->err && w->err != -ECANCELED)
		return;
	w->err = error_set(err, "region %s: node %s %s", j->region->name,
			   j->thread->rack->node[conn->node].name,
			   failure_words(err));
	j->silent = err == -EHOSTDOWN ? conn : NULL;
}

/* The operation has failed for good: says why nothing was heard, if that can be
 * found out before the deadline, or in a quarter of its time. */
static void explain_silence(const struct job *j)
{
	struct aq_rack *rack = j->thread->rack;
	uint32_t budget_ms = u32_max(client_rack_left_ms(rack, j->deadline_ns),
				     aq_rack_deadline(rack) / 4);
	char why[CLIENT_REACH_WORDS];

	client_reach_why(rack, j->silent->node, j->silent->peer, budget_ms,
			 why);
	(void)error_set(-EHOSTDOWN, "region %s: node %s %s%s", j->region->name,
			rack->node[j->silent->node].name,
			failure_words(-EHOSTDOWN),
			why[0] ? why : "; `aquifer status` says more");
}

static void finish_slot(struct job *j, struct window *w,
			const struct client_done *done)
{
	struct slot *s = &w->slot[done->slot];

	if (done->slot >= CLIENT_SLOT_COUNT || !s->conn)
		return;
	if (done->err)
		note_failure(j, w, s->conn, done->err);
	else if (j->kind != CLIENT_WRITE)
		memcpy(j->in + s->at, staging_of(j, done->slot), s->len_bytes);
	s->conn->busy--;
	s->conn = NULL;
	w->busy--;
}

/* Ends the connections that still owe something: the deadline is over, or the
 * node has forgotten them. `all`: whether they are lost or not. */
static void give_up(struct job *j, struct window *w, bool all)
{
	unsigned i;

	for (i = 0; i < CLIENT_SLOT_COUNT; i++) {
		struct client_conn *conn = w->slot[i].conn;

		if (!conn)
			continue;
		if (!all && !atomic_load_explicit(&conn->bond.is_lost,
						  memory_order_relaxed))
			continue;
		note_failure(j, w, conn, -EHOSTDOWN);
		client_conn_close(conn);
		w->slot[i].conn = NULL;
		w->busy--;
		/* The other requests of that connection are gone with it. */
		for (unsigned k = i + 1; k < CLIENT_SLOT_COUNT; k++)
			if (w->slot[k].conn == conn) {
				w->slot[k].conn = NULL;
				w->busy--;
			}
	}
}

/* Waits until at most `limit` requests are under way. */
static void wait_for(struct job *j, struct window *w, unsigned limit)
{
	const struct timespec nap = {.tv_nsec = CLIENT_NAP_NS};
	struct aq_rack *rack = j->thread->rack;
	struct client_done done[CLIENT_SLOT_COUNT];
	unsigned idle = 0;
	int i, n;

	while (w->busy > limit) {
		n = rack->transport->poll(j->thread, done, CLIENT_SLOT_COUNT);
		for (i = 0; i < n; i++)
			finish_slot(j, w, &done[i]);
		if (n > 0) {
			idle = 0;
			continue;
		}
		if (n < 0 || client_rack_now_ns(rack) > j->deadline_ns) {
			give_up(j, w, true);
			return;
		}
		if (++idle < CLIENT_IDLE_YIELDS) {
			rack->transport->relax(rack->transport_ctx);
		} else {
			give_up(j, w, false);
			(void)nanosleep(&nap, NULL);
		}
	}
}

static uint32_t free_slot(const struct window *w)
{
	uint32_t i = 0;

	while (w->slot[i].conn)
		i++;
	return i;
}

/* Posts the part of the job that starts at `at`; *len_bytes of it. */
static int post_part(struct job *j, struct window *w, size_t at,
		     size_t *len_bytes)
{
	struct client_spot spot =
		client_map_find(&j->view->map, j->offset + at,
				u64_min(j->len_bytes - at, CLIENT_SLOT_BYTES));
	struct client_op op = {.kind = j->kind,
			       .len_bytes = (uint32_t)spot.len_bytes,
			       .compare_add = j->compare_add,
			       .swap = j->swap};
	struct client_conn *conn;
	int err;

	err = client_conn_ready(j->thread, j->view->map.piece[spot.piece].node,
				j->deadline_ns, &conn);
	if (!err)
		err = client_view_grant(j->view, j->region, spot.piece, conn,
					j->deadline_ns);
	if (err)
		return err;
	op.slot = free_slot(w);
	op.rkey = j->view->grant[spot.piece].rkey;
	op.remote_addr = j->view->grant[spot.piece].addr + spot.offset;
	if (j->kind == CLIENT_WRITE)
		memcpy(staging_of(j, op.slot), j->out + at, op.len_bytes);
	err = j->thread->rack->transport->post(conn, &op);
	if (err)
		return err;
	j->is_posted = true;
	w->slot[op.slot] = (struct slot){conn, at, op.len_bytes};
	w->busy++;
	conn->busy++;
	*len_bytes = op.len_bytes;
	return 0;
}

/* A queue pair that has reported an error carries nothing any more. */
static void close_broken(struct job *j)
{
	const struct client_map *m = &j->view->map;
	uint32_t i;

	for (i = 0; i < m->piece_count; i++)
		client_conn_close(&j->thread->conn[m->piece[i].node]);
}

static int transfer(struct job *j)
{
	struct window w = {0};
	size_t at = 0, len;
	int err = 0;

	while (at < j->len_bytes && !w.err) {
		wait_for(j, &w, CLIENT_SLOT_COUNT - 1);
		if (w.err)
			break;
		err = post_part(j, &w, at, &len);
		if (err)
			break;
		at += len;
	}
	wait_for(j, &w, 0);
	if (w.err)
		close_broken(j);
	return w.err ? w.err : err;
}

/* ---- trying again ------------------------------------------------------- */

static int check_bounds(const struct job *j)
{
	uint64_t size = j->view->map.size_bytes;

	if (j->offset > size || j->len_bytes > size - j->offset)
		return error_set(-ERANGE,
				 "%zu bytes at %llu are outside region %s, "
				 "which has %llu",
				 j->len_bytes, (unsigned long long)j->offset,
				 j->region->name, (unsigned long long)size);
	return 0;
}

/* -ESTALE was refused before it had any effect. A lost connection leaves it
 * open whether the operation was done, which only reads bear: a write done
 * again would undo what others wrote since. Where no connection came to be, the
 * region may have moved to another node before its own one ended. */
static bool may_retry(const struct job *j, int err)
{
	if (err == -ESTALE)
		return true;
	return (err == -EHOSTDOWN || err == -ECANCELED) &&
	       (j->kind == CLIENT_READ || !j->is_posted) &&
	       client_rack_now_ns(j->thread->rack) < j->deadline_ns;
}

static int run(struct job *j)
{
	int err, attempt;

	for (attempt = 0;; attempt++) {
		j->silent = NULL;
		j->is_posted = false;
		err = client_view_ready(j->thread, j->region, j->deadline_ns,
					&j->view);
		if (!err)
			err = check_bounds(j);
		if (!err && j->len_bytes)
			err = transfer(j);
		if (!err || attempt + 1 == CLIENT_ATTEMPTS ||
		    !may_retry(j, err))
			return err == -ECANCELED ? -EHOSTDOWN : err;
		err = client_region_refresh(j->region, j->thread,
					    j->deadline_ns);
		if (err)
			return err;
		j->thread->counters[CLIENT_C_REFRESHES]++;
	}
}

static void count(const struct job *j, uint64_t start_ns, int err)
{
	struct tally *t = j->thread->tally;

	if (err) {
		tally_done(t, TALLY_ERRORS);
		return;
	}
	switch (j->kind) {
	case CLIENT_READ:
		tally_done_bytes(t, TALLY_READS, j->len_bytes);
		break;
	case CLIENT_WRITE:
		tally_done_bytes(t, TALLY_WRITES, j->len_bytes);
		break;
	case CLIENT_CAS:
	case CLIENT_FAA:
		tally_done(t, TALLY_ATOMICS);
		break;
	}
	hist_record(&t->latency,
		    client_rack_now_ns(j->thread->rack) - start_ns);
}

static int start(struct job *j)
{
	struct aq_rack *rack = j->region->rack;
	uint64_t start_ns;
	int err = client_thread_get(rack, &j->thread);

	if (!err)
		err = client_thread_open(j->thread);
	if (err)
		return err;
	start_ns = client_rack_now_ns(rack);
	j->deadline_ns = start_ns + 1000000ull * aq_rack_deadline(rack);
	err = j->kind != CLIENT_READ && j->region->flags & AQ_REGION_READ_ONLY
		      ? error_set(-EACCES, "region %s was opened read-only",
				  j->region->name)
		      : run(j);
	if (err == -EHOSTDOWN && j->silent)
		explain_silence(j);
	count(j, start_ns, err);
	return err;
}

int aq_read(struct aq_region *region, uint64_t offset, void *buf,
	    size_t len_bytes)
{
	struct job j = {.region = region,
			.kind = CLIENT_READ,
			.offset = offset,
			.in = buf,
			.len_bytes = len_bytes};

	return start(&j);
}

int aq_write(struct aq_region *region, uint64_t offset, const void *buf,
	     size_t len_bytes)
{
	struct job j = {.region = region,
			.kind = CLIENT_WRITE,
			.offset = offset,
			.out = buf,
			.len_bytes = len_bytes};

	return start(&j);
}

static int atomic(struct job *j, uint64_t *old)
{
	uint64_t value = 0;
	int err;

	if (j->offset % sizeof(value))
		return error_set(-EINVAL,
				 "offset %llu of an atomic operation is not "
				 "divisible by 8",
				 (unsigned long long)j->offset);
	j->in = (uint8_t *)&value;
	j->len_bytes = sizeof(value);
	err = start(j);
	if (!err && old)
		*old = value;
	return err;
}

int aq_cas(struct aq_region *region, uint64_t offset, uint64_t expected,
	   uint64_t desired, uint64_t *old)
{
	struct job j = {.region = region,
			.kind = CLIENT_CAS,
			.offset = offset,
			.compare_add = expected,
			.swap = desired};

	return atomic(&j, old);
}

int aq_faa(struct aq_region *region, uint64_t offset, uint64_t add,
	   uint64_t *old)
{
	struct job j = {.region = region,
			.kind = CLIENT_FAA,
			.offset = offset,
			.compare_add = add};

	return atomic(&j, old);
}
