/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plain rdma_cm program, for what rdma-core's utilities do not show.
 *
 *   cm_client listen ADDRESS PORT COUNT   serves memory to COUNT connections,
 *                                         until each has left its time-wait
 *   cm_client call ADDRESS PORT [FIRST]   writes, reads back and compares, ends
 *                                         the connection and waits for the end
 *                                         of its time-wait. FIRST: an attempt
 *                                         to connect there is under way first
 *   cm_client wait ADDRESS PORT           connects and is idle until the peer
 * is gone
 *
 * Each event is one line of output.
 */
#include <arpa/inet.h>
#include <rdma/rdma_cma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	LEN = 20000,
	POLL_MAX = 2000000000,
};

struct card {
	uint64_t addr;
	uint32_t rkey;
};

static struct rdma_event_channel *channel;
static uint8_t far_mem[LEN], near_mem[LEN], copy[LEN];

#define CHECK(x)                                                   \
	do {                                                       \
		if (!(x)) {                                        \
			printf("line %d: %s: %m\n", __LINE__, #x); \
			exit(1);                                   \
		}                                                  \
	} while (0)

static struct sockaddr_in address(const char *ip, const char *port)
{
	struct sockaddr_in sa = {.sin_family = AF_INET,
				 .sin_port = htons((uint16_t)atoi(port))};

	CHECK(inet_pton(AF_INET, ip, &sa.sin_addr) == 1);
	return sa;
}

static struct rdma_cm_event *next_event(void)
{
	struct rdma_cm_event *ev;

	CHECK(rdma_get_cm_event(channel, &ev) == 0);
	printf("%s %d\n", rdma_event_str(ev->event), ev->status);
	return ev;
}

static void expect(enum rdma_cm_event_type type)
{
	struct rdma_cm_event *ev = next_event();

	CHECK(ev->event == type);
	CHECK(rdma_ack_cm_event(ev) == 0);
}

static void make_qp(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4,
			.max_recv_wr = 4,
			.max_send_sge = 1,
			.max_recv_sge = 1},
	};

	CHECK(rdma_create_qp(id, NULL, &init) == 0);
}

/* ---- the server ---------------------------------------------------------- */

static void take(struct rdma_cm_id *id)
{
	struct ibv_mr *mr;
	struct card card;
	struct rdma_conn_param p = {.private_data = &card,
				    .private_data_len = sizeof(card),
				    .responder_resources = 4,
				    .initiator_depth = 4};

	make_qp(id);
	mr = ibv_reg_mr(id->pd, far_mem, LEN,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_WRITE);
	CHECK(mr);
	card = (struct card){(uintptr_t)far_mem, mr->rkey};
	CHECK(rdma_accept(id, &p) == 0);
}

static void serve(const char *ip, const char *port, int count)
{
	struct sockaddr_in sa = address(ip, port);
	struct rdma_cm_id *listener;

	CHECK(rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_bind_addr(listener, (struct sockaddr *)&sa) == 0);
	CHECK(rdma_listen(listener, 8) == 0);
	puts("listening");
	while (count) {
		struct rdma_cm_event *ev = next_event();
		struct rdma_cm_id *id = ev->id;
		enum rdma_cm_event_type type = ev->event;

		CHECK(rdma_ack_cm_event(ev) == 0);
		if (type == RDMA_CM_EVENT_CONNECT_REQUEST)
			take(id);
		else if (type == RDMA_CM_EVENT_DISCONNECTED)
			CHECK(rdma_disconnect(id) == 0);
		if (type != RDMA_CM_EVENT_TIMEWAIT_EXIT)
			continue;
		rdma_destroy_qp(id);
		CHECK(rdma_destroy_id(id) == 0);
		count--;
	}
	CHECK(rdma_destroy_id(listener) == 0);
}

/* ---- the client ---------------------------------------------------------- */

/* As far as the request to connect; does not wait for the outcome. */
static struct rdma_cm_id *call(const char *ip, const char *port)
{
	struct sockaddr_in sa = address(ip, port);
	struct rdma_conn_param p = {.responder_resources = 4,
				    .initiator_depth = 4,
				    .retry_count = 7};
	struct rdma_cm_id *id;

	CHECK(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP) == 0);
	CHECK(rdma_resolve_addr(id, NULL, (struct sockaddr *)&sa, 2000) == 0);
	expect(RDMA_CM_EVENT_ADDR_RESOLVED);
	CHECK(rdma_resolve_route(id, 2000) == 0);
	expect(RDMA_CM_EVENT_ROUTE_RESOLVED);
	make_qp(id);
	CHECK(rdma_connect(id, &p) == 0);
	return id;
}

static struct card established(void)
{
	struct rdma_cm_event *ev = next_event();
	struct card card;

	CHECK(ev->event == RDMA_CM_EVENT_ESTABLISHED);
	CHECK(ev->param.conn.private_data_len >= sizeof(card));
	memcpy(&card, ev->param.conn.private_data, sizeof(card));
	CHECK(rdma_ack_cm_event(ev) == 0);
	return card;
}

static void move(struct rdma_cm_id *id, enum ibv_wr_opcode opcode,
		 const struct card *card, void *mem)
{
	struct ibv_mr *mr =
		ibv_reg_mr(id->pd, mem, LEN, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_sge sge = {(uintptr_t)mem, LEN, mr ? mr->lkey : 0};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = opcode,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = {card->addr, card->rkey},
	};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n = 0;

	CHECK(mr);
	CHECK(ibv_post_send(id->qp, &wr, &bad) == 0);
	for (unsigned i = 0; i < POLL_MAX && !n; i++)
		n = ibv_poll_cq(id->send_cq, 1, &wc);
	CHECK(n == 1);
	printf("%s: %s\n", opcode == IBV_WR_RDMA_READ ? "READ" : "WRITE",
	       ibv_wc_status_str(wc.status));
	CHECK(wc.status == IBV_WC_SUCCESS);
	CHECK(ibv_dereg_mr(mr) == 0);
}

static void show_mtu(struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(ibv_query_qp(id->qp, &attr,
			   IBV_QP_PATH_MTU | IBV_QP_MIN_RNR_TIMER, &init) == 0);
	printf("path MTU %d\n", 128 << attr.path_mtu);
	/* Where retries are counted each has its 655 ms, as with the kernel's
	 * CM: a receiver that is slow to post is borne. */
	CHECK(attr.min_rnr_timer == 0);
}

/* The rest of a connection's life, seen from another channel. */
static void finish(struct rdma_cm_id *id)
{
	struct rdma_event_channel *old = channel;

	channel = rdma_create_event_channel();
	CHECK(channel);
	CHECK(rdma_migrate_id(id, channel) == 0);
	rdma_destroy_event_channel(old);
	expect(RDMA_CM_EVENT_TIMEWAIT_EXIT);
	rdma_destroy_qp(id);
	CHECK(rdma_destroy_id(id) == 0);
}

static void work(const char *ip, const char *port, const char *first)
{
	struct rdma_cm_id *other = first ? call(first, port) : NULL;
	struct rdma_cm_id *id = call(ip, port);
	struct card card = established();

	if (other) {
		rdma_destroy_qp(other);
		CHECK(rdma_destroy_id(other) == 0);
	}
	show_mtu(id);
	for (unsigned i = 0; i < LEN; i++)
		near_mem[i] = (uint8_t)(i * 7 + i / 256);
	move(id, IBV_WR_RDMA_WRITE, &card, near_mem);
	move(id, IBV_WR_RDMA_READ, &card, copy);
	CHECK(memcmp(copy, near_mem, LEN) == 0);
	CHECK(rdma_disconnect(id) == 0);
	expect(RDMA_CM_EVENT_DISCONNECTED);
	finish(id);
}

static void wait_idle(const char *ip, const char *port)
{
	struct rdma_cm_id *id = call(ip, port);

	(void)established();
	expect(RDMA_CM_EVENT_DISCONNECTED);
	/* Late, and no error: what is posted is flushed. */
	CHECK(rdma_disconnect(id) == 0);
	finish(id);
}

int main(int argc, char **argv)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	channel = rdma_create_event_channel();
	CHECK(channel);
	CHECK(argc >= 4);
	if (!strcmp(argv[1], "listen") && argc == 5)
		serve(argv[2], argv[3], atoi(argv[4]));
	else if (!strcmp(argv[1], "call"))
		work(argv[2], argv[3], argc > 4 ? argv[4] : NULL);
	else if (!strcmp(argv[1], "wait"))
		wait_idle(argv[2], argv[3]);
	else
		return 2;
	rdma_destroy_event_channel(channel);
	return 0;
}
