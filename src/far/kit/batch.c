/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: requests are collected, posted together in their order, and waited
 * for at the last of them, which alone is signaled. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "kit.h"

enum {
	POLL_BATCH = 16,
	WAIT_LOOKS = 256, /* polls between looks at the clock */
};

#define WR_BATCH UINT64_MAX /* the wr_id of a batch that is waited for */

/* Requests end by themselves, with an error if need be; this is for a NIC that
 * has lost one. */
#define WAIT_NS_MAX 60000000000ull

void kit_begin(struct kit_client *k)
{
	k->wr_count = 0;
}

/* NULL: a test has stopped this client here, or it has no connection; then
 * kit_post says so. */
static struct kit_wr *next(struct kit_client *k, int point, const void *local,
			   uint64_t len_bytes)
{
	const uint8_t *b = local;
	bool is_big;
	struct kit_wr *w;

	if (UNLIKELY(k->config.crash != NULL) && !k->is_crashed)
		k->is_crashed = k->config.crash(k->config.crash_ctx, point);
	if (UNLIKELY(k->is_crashed || k->is_broken))
		return NULL;
	ASSERT(k->wr_count < KIT_WR_MAX);
	w = &k->wr[k->wr_count++];
	is_big = k->big && b >= k->big && b < k->big + k->big_bytes;
	w->is_masked = false;
	w->sge = (struct ibv_sge){.addr = (uintptr_t)local,
				  .length = (uint32_t)len_bytes,
				  .lkey = (is_big ? k->big_mr : k->mr)->lkey};
	return w;
}

static struct kit_wr *add_rdma(const struct kit_space *s, int point,
			       enum ibv_wr_opcode opcode, uint64_t offset,
			       const void *local, uint64_t len_bytes)
{
	struct kit_wr *w = next(s->client, point, local, len_bytes);

	if (w)
		w->ib = (struct ibv_send_wr){
			.opcode = opcode,
			.num_sge = 1,
			.sg_list = &w->sge,
			.wr.rdma = {.remote_addr = s->addr + offset,
				    .rkey = s->rkey}};
	return w;
}

void kit_read(const struct kit_space *s, uint64_t offset, void *to,
	      uint64_t len_bytes)
{
	struct kit_client *k = s->client;
	struct kit_wr *w = add_rdma(s, k->config.points.read, IBV_WR_RDMA_READ,
				    offset, to, len_bytes);

	k->reads++;
	/* The soft NIC, which has masked atomics, executes in the order of
	 * arrival; of others only those requests that are fenced wait for the
	 * atomic before them. */
	if (w && !k->remote.link->has_masked_atomics && k->wr_count > 1)
		w->ib.send_flags = IBV_SEND_FENCE;
}

void kit_write(const struct kit_space *s, int point, uint64_t offset,
	       const void *from, uint64_t len_bytes)
{
	s->client->writes++;
	(void)add_rdma(s, point, IBV_WR_RDMA_WRITE, offset, from, len_bytes);
}

void kit_cas(const struct kit_space *s, int point, uint64_t offset,
	     uint64_t compare, uint64_t swap, uint64_t *answer)
{
	struct kit_wr *w = next(s->client, point, answer, sizeof(*answer));

	if (!w)
		return;
	s->client->atomics++;
	w->ib = (struct ibv_send_wr){
		.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
		.num_sge = 1,
		.sg_list = &w->sge,
		.wr.atomic = {.remote_addr = s->addr + offset,
			      .rkey = s->rkey,
			      .compare_add = compare,
			      .swap = swap}};
}

void kit_masked_cas(const struct kit_space *s, int point, uint64_t offset,
		    uint64_t compare_mask, uint64_t swap, uint64_t swap_mask,
		    uint64_t *answer)
{
	struct kit_wr *w = next(s->client, point, answer, sizeof(*answer));

	if (!w)
		return;
	s->client->atomics++;
	w->is_masked = true;
	w->masked =
		(struct aqdv_masked_wr){.sg_list = &w->sge,
					.num_sge = 1,
					.remote_addr = s->addr + offset,
					.rkey = s->rkey,
					.cas = {.compare_mask = compare_mask,
						.swap = swap,
						.swap_mask = swap_mask}};
}

static int broken(struct kit_client *k, const char *why, int code)
{
	/* The first reason counts; the rest only follows. */
	if (!k->is_broken)
		(void)error_set(-ESTALE,
				"the connection to %s is broken: %s %d",
				k->config.what, why, code);
	k->is_broken = true;
	return -ESTALE;
}

/* Nothing was heard of the node. Where it never answered on this connection,
 * what is wrong is between the machines, and is said. A node that answered
 * before has died rather, and who goes on with a copy must not wait. */
static int silent(struct kit_client *k, const char *how, int code)
{
	const struct client_link *link = k->remote.link;
	char why[CLIENT_REACH_WORDS] = "";

	if (k->is_broken)
		return -ESTALE;
	if (!k->has_answered)
		client_link_why(link, why);
	else
		client_link_hint(link, why);
	(void)error_set(-ESTALE, "the node of %s does not answer (%s %d)%s",
			k->config.what, how, code, why);
	k->is_broken = true;
	return -ESTALE;
}

static int failed(struct kit_client *k, enum ibv_wc_status status)
{
	return client_wc_is_silence(status) ? silent(k, "status", (int)status)
					    : broken(k, "status", (int)status);
}

/* Requests of one kind that follow each other are posted as one list. */
static int post_list(struct kit_client *k, unsigned from, unsigned to)
{
	struct ibv_qp *qp = k->remote.link->qp;
	struct aqdv_masked_wr *bad_masked;
	struct ibv_send_wr *bad;

	if (k->wr[from].is_masked) {
		for (unsigned i = from; i + 1 < to; i++)
			k->wr[i].masked.next = &k->wr[i + 1].masked;
		return aqdv_post_masked_cas(qp, &k->wr[from].masked,
					    &bad_masked);
	}
	for (unsigned i = from; i + 1 < to; i++)
		k->wr[i].ib.next = &k->wr[i + 1].ib;
	return ibv_post_send(qp, &k->wr[from].ib, &bad);
}

static int post(struct kit_client *k, uint64_t wr_id)
{
	unsigned count = k->wr_count, to;
	struct kit_wr *last = &k->wr[count - 1];

	k->wr_count = 0;
	if (last->is_masked) {
		last->masked.send_flags |= IBV_SEND_SIGNALED;
		last->masked.wr_id = wr_id;
	} else {
		last->ib.send_flags |= IBV_SEND_SIGNALED;
		last->ib.wr_id = wr_id;
	}
	for (unsigned from = 0; from < count; from = to) {
		int err;

		for (to = from + 1; to < count; to++)
			if (k->wr[to].is_masked != k->wr[from].is_masked)
				break;
		err = post_list(k, from, to);
		if (err)
			return broken(k, "posting", abs(err));
	}
	return 0;
}

int kit_post(struct kit_client *k, uint32_t wr_id)
{
	return k->is_broken  ? -ESTALE
	       : k->wr_count ? post(k, wr_id)
			     : kit_stopped(k);
}

int kit_poll(struct kit_client *k, bool *batch_done)
{
	struct ibv_wc wc[POLL_BATCH];
	int err = 0, n = ibv_poll_cq(k->remote.link->cq, POLL_BATCH, wc);

	if (n < 0)
		return broken(k, "polling", n);
	if (n > 0)
		k->polled_ns = kit_now_ns(k);
	else
		client_clock_polled(k->clock);
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS)
			err = failed(k, wc[i].status);
		else if (wc[i].wr_id == WR_BATCH)
			*batch_done = true;
		else
			k->completed(k, wc[i].wr_id);
	}
	if (n > 0 && !err)
		k->has_answered = true;
	return err;
}

int kit_run(struct kit_client *k)
{
	uint64_t give_up_ns = 0, posted_ns = 0;
	bool is_done = false;
	int err;

	if (k->is_broken || !k->wr_count)
		return kit_stopped(k);
	if (k->ran)
		posted_ns = kit_now_ns(k);
	k->trips++;
	err = post(k, WR_BATCH);
	for (unsigned looks = 1; !err && !is_done; looks++) {
		err = kit_poll(k, &is_done);
		if (looks % WAIT_LOOKS)
			continue;
		if (!give_up_ns)
			give_up_ns = kit_now_ns(k) + WAIT_NS_MAX;
		else if (kit_now_ns(k) > give_up_ns)
			err = silent(k, "waiting", ETIMEDOUT);
	}
	if (err)
		return err;
	if (k->ran)
		k->ran(k, k->polled_ns - posted_ns);
	return k->is_crashed ? -ESHUTDOWN : 0;
}

int kit_read_now(const struct kit_space *s, uint64_t offset, void *to,
		 uint64_t len_bytes)
{
	uint64_t part;
	int err = 0;

	for (uint64_t done = 0; done < len_bytes && !err; done += part) {
		part = u64_min(len_bytes - done, KIT_LARGE_BYTES);
		kit_begin(s->client);
		kit_read(s, offset + done, (uint8_t *)to + done, part);
		err = kit_run(s->client);
	}
	return err;
}

int kit_write_now(const struct kit_space *s, int point, uint64_t offset,
		  const void *from, uint64_t len_bytes)
{
	kit_begin(s->client);
	kit_write(s, point, offset, from, len_bytes);
	return kit_run(s->client);
}

int kit_cas_now(const struct kit_space *s, int point, uint64_t offset,
		uint64_t compare, uint64_t swap, uint64_t *old)
{
	int err;

	kit_begin(s->client);
	kit_cas(s, point, offset, compare, swap, s->client->answer);
	err = kit_run(s->client);
	if (!err)
		*old = *s->client->answer;
	return err;
}

int kit_swap_now(const struct kit_space *s, int point, uint64_t offset,
		 uint64_t from, uint64_t to)
{
	uint64_t old;
	int err = kit_cas_now(s, point, offset, from, to, &old);

	return err ? err : old == from ? 0 : -EAGAIN;
}

void kit_pause(struct kit_client *k, uint64_t ns)
{
	uint64_t end = kit_now_ns(k) + ns;

	do
		client_clock_relax(k->clock);
	while (kit_now_ns(k) < end);
}

int kit_count_words(const struct kit_space *s, uint64_t at, uint64_t count,
		    uint32_t stride, uint64_t mask, uint64_t *used)
{
	const uint8_t *stage = s->client->stage;
	uint64_t n, at_once = KIT_STAGE_BYTES / stride;
	int err = 0;

	for (uint64_t done = 0; done < count && !err; done += n) {
		n = u64_min(at_once, count - done);
		err = kit_read_now(s, at + done * stride, s->client->stage,
				   n * stride);
		for (uint64_t i = 0; i < n && !err; i++) {
			le64 word;

			memcpy(&word, stage + i * stride, sizeof(word));
			*used += (le64_get(word) & mask) != 0;
		}
	}
	return err;
}
