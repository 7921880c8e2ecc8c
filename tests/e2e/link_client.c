/* SPDX-License-Identifier: Apache-2.0 */
/* A user of client/link.h: posts its own requests to a region NAME. With a
 * second word it says "ready", waits for a line, and expects the next request
 * to fail in bounded time. */
#include <aquifer/aquifer.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client/link.h"
#include "client/verbs_api.h"

enum {
	LEN = 4096,
	BOUND_S = 8,
};

static uint8_t buf[2 * LEN];

static int fail(const char *what, int err)
{
	fprintf(stderr, "%s: %d: %s\n", what, err, aq_last_error());
	return 1;
}

/* One request and its completion status; -ETIME. */
static int run(struct client_link *l, struct ibv_mr *mr,
	       enum ibv_wr_opcode opcode, size_t at, uint64_t offset)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)buf + at, .length = LEN, .lkey = mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.sg_list = &sge,
		      .num_sge = 1,
		      .opcode = opcode,
		      .send_flags = IBV_SEND_SIGNALED,
		      .wr.rdma = {.remote_addr = l->addr + offset,
				  .rkey = l->rkey}};
	uint64_t end = client_clock_now_ns(l->clock) + BOUND_S * 1000000000ull;
	struct ibv_wc wc;
	int n = ibv_post_send(l->qp, &wr, &bad);

	if (n)
		return -n;
	while ((n = ibv_poll_cq(l->cq, 1, &wc)) == 0) {
		if (client_clock_now_ns(l->clock) > end)
			return -ETIME;
		client_clock_relax(l->clock);
	}
	return n < 0 ? n : (int)wc.status;
}

static int check_rights(struct aq_rack *rack, const char *name,
			struct ibv_mr *mr)
{
	struct client_link_options o = {.rights = CLIENT_LINK_READ};
	struct client_link *l;
	int err = client_link_open(rack, name, &o, &l), status;

	if (err)
		return fail("open to read", err);
	status = run(l, mr, IBV_WR_RDMA_READ, 0, 0);
	if (status == IBV_WC_SUCCESS)
		status = run(l, mr, IBV_WR_RDMA_WRITE, 0, 0);
	client_link_close(l);
	return status == IBV_WC_REM_ACCESS_ERR
		       ? 0
		       : fail("a write to read", status);
}

static int use(struct aq_rack *rack, const char *name, bool dies)
{
	struct client_link *l;
	struct ibv_mr *mr;
	char line[16];
	int err = client_link_open(rack, name, NULL, &l);

	if (err)
		return fail("open", err);
	if (!l->has_masked_atomics || l->size_bytes < 3 * LEN)
		return fail("what the link says", 0);
	mr = l->verbs->reg_mr(l->pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		return fail("reg_mr", -errno);
	for (unsigned i = 0; i < LEN; i++)
		buf[i] = (uint8_t)(i * 7);
	err = run(l, mr, IBV_WR_RDMA_WRITE, 0, 2 * LEN);
	if (!err)
		err = run(l, mr, IBV_WR_RDMA_READ, LEN, 2 * LEN);
	if (err || memcmp(buf, buf + LEN, LEN) != 0)
		return fail("write and read", err);
	err = check_rights(rack, name, mr);
	if (!err && dies) {
		puts("ready");
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return fail("no line", 0);
		/* Mapped memory outlives its node until that is noticed. */
		for (int i = 0; i < 500 && err == 0; i++) {
			err = run(l, mr, IBV_WR_RDMA_READ, 0, 0);
			usleep(10000);
		}
		err = err > 0 ? 0 : fail("a dead node", err);
	}
	(void)l->verbs->dereg_mr(mr);
	client_link_close(l);
	return err;
}

int main(int argc, char **argv)
{
	struct client_link *l;
	struct aq_rack *rack;
	int err = argc < 2 ? -EINVAL : aq_rack_open(NULL, &rack);

	if (err)
		return fail("rack", err);
	err = use(rack, argv[1], argc > 2);
	if (!err && argc == 2 &&
	    client_link_open(rack, "no-such-region", NULL, &l) != -ENOENT)
		err = fail("a region that is not there", 0);
	aq_rack_close(rack);
	return err;
}
