/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client of a memory node in one file: HTTP by hand, then verbs.
 *
 *   mem_client SOCKET TOKEN fill|check|zero|cas|narrow|hold REGION
 *
 * fill writes a pattern, check and zero read everything, cas counts up with
 * compare-and-swap, narrow tries to leave a window, hold keeps a connection
 * with a grant until it is killed.
 */
#include <aquifer/aqdv.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum {
	PORT = 1,
	GID_INDEX = 1,
	PSN = 77,
	BUF_BYTES = 1 << 20,
	CAS_ROUNDS = 1000,
	ANSWER_MAX = 1 << 16,
};

struct client {
	const char *path;
	const char *token;
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;
	char id[64];
	uint64_t addr;
	uint32_t rkey;
	uint64_t length;
};

static void die(const char *what)
{
	fprintf(stderr, "mem_client: %s\n", what);
	exit(1);
}

static void need(int ok, const char *what)
{
	if (!ok)
		die(what);
}

/* The answer's JSON, or NULL for none; dies unless the status is 2xx. */
static json_t *http(struct client *c, const char *path, json_t *body)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char *text = body ? json_dumps(body, 0) : NULL;
	static char answer[ANSWER_MAX];
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	size_t got = 0;
	ssize_t n;
	char *json;

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", c->path);
	need(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0, "connect");
	dprintf(fd,
		"POST %s HTTP/1.1\r\nHost: node\r\nAuthorization: Bearer %s\r\n"
		"Connection: close\r\nContent-Length: %zu\r\n\r\n%s",
		path, c->token, text ? strlen(text) : 0, text ? text : "");
	free(text);
	json_decref(body);
	do {
		n = read(fd, answer + got, sizeof(answer) - 1 - got);
		got += n > 0 ? (size_t)n : 0;
	} while (n > 0);
	answer[got] = 0;
	close(fd);
	if (strncmp(answer, "HTTP/1.1 2", 10) != 0)
		die(answer);
	json = strstr(answer, "\r\n\r\n");
	return json ? json_loads(json + 4, 0, NULL) : NULL;
}

static uint64_t number(json_t *j, const char *name)
{
	need(json_is_integer(json_object_get(j, name)), name);
	return (uint64_t)json_integer_value(json_object_get(j, name));
}

static const char *string(json_t *j, const char *name)
{
	const char *s = json_string_value(json_object_get(j, name));

	need(s != NULL, name);
	return s;
}

static void open_nic(struct client *c)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {
		.cap = {.max_send_wr = 16,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	need(list && list[0], "no device");
	c->context = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	need(c->context != NULL, "ibv_open_device");
	c->pd = ibv_alloc_pd(c->context);
	c->cq = ibv_create_cq(c->context, 32, NULL, NULL, 0);
	c->buf = calloc(1, BUF_BYTES);
	c->mr = ibv_reg_mr(c->pd, c->buf, BUF_BYTES, IBV_ACCESS_LOCAL_WRITE);
	init.send_cq = init.recv_cq = c->cq;
	c->qp = ibv_create_qp(c->pd, &init);
	need(c->qp && c->mr, "verbs objects");
}

static void connect_qp(struct client *c, const union ibv_gid *gid,
		       json_t *answer)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = PORT};

	need(ibv_modify_qp(c->qp, &attr,
			   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				   IBV_QP_ACCESS_FLAGS) == 0,
	     "INIT");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.dest_qp_num = (uint32_t)number(answer, "qpn"),
		.rq_psn = (uint32_t)number(answer, "psn"),
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			    .port_num = PORT,
			    .grh = {.dgid = *gid,
				    .sgid_index = GID_INDEX,
				    .hop_limit = 64}},
	};
	need(ibv_modify_qp(c->qp, &attr,
			   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				   IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				   IBV_QP_MAX_DEST_RD_ATOMIC |
				   IBV_QP_MIN_RNR_TIMER) == 0,
	     "RTR");
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.sq_psn = PSN,
		.max_rd_atomic = (uint8_t)number(answer, "rd_atomic"),
	};
	need(ibv_modify_qp(c->qp, &attr,
			   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				   IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				   IBV_QP_MAX_QP_RD_ATOMIC) == 0,
	     "RTS");
}

static void connect_node(struct client *c)
{
	union ibv_gid gid;
	char hex[33];
	json_t *j;

	need(ibv_query_gid(c->context, PORT, GID_INDEX, &gid) == 0, "gid");
	for (unsigned i = 0; i < sizeof(gid.raw); i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", gid.raw[i]);
	j = http(c, "/v1/connect",
		 json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:s, s:s}", "proto",
			   "1.0", "gid", hex, "qpn", (int)c->qp->qp_num, "psn",
			   PSN, "mtu", 4096, "rd_atomic", 16, "access", "rw",
			   "client", "mem_client"));
	(void)snprintf(c->id, sizeof(c->id), "%s", string(j, "connection"));
	for (unsigned i = 0; i < sizeof(gid.raw); i++) {
		const char *s = string(j, "gid") + 2 * i;
		char byte[3] = {s[0], s[1], 0};

		gid.raw[i] = (uint8_t)strtoul(byte, NULL, 16);
	}
	connect_qp(c, &gid, j);
	json_decref(j);
}

static void grant(struct client *c, const char *region, const char *rights,
		  uint64_t offset, uint64_t length)
{
	char path[128];
	json_t *j;

	(void)snprintf(path, sizeof(path), "/v1/connections/%s/grants", c->id);
	j = http(c, path,
		 json_pack("{s:s, s:s, s:I, s:I}", "region", region, "rights",
			   rights, "offset", (json_int_t)offset, "length",
			   (json_int_t)length));
	c->addr = number(j, "addr");
	c->rkey = (uint32_t)number(j, "rkey");
	c->length = number(j, "length");
	json_decref(j);
}

static enum ibv_wc_status run(struct client *c, struct ibv_send_wr *wr,
			      uint32_t len_bytes)
{
	struct ibv_sge sge = {.addr = (uintptr_t)c->buf,
			      .length = len_bytes,
			      .lkey = c->mr->lkey};
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	need(ibv_post_send(c->qp, wr, &bad) == 0, "ibv_post_send");
	do
		n = ibv_poll_cq(c->cq, 1, &wc);
	while (n == 0);
	need(n == 1, "ibv_poll_cq");
	return wc.status;
}

static enum ibv_wc_status move(struct client *c, enum ibv_wr_opcode op,
			       uint64_t at, uint32_t len_bytes)
{
	struct ibv_send_wr wr = {
		.opcode = op,
		.wr.rdma = {.remote_addr = c->addr + at, .rkey = c->rkey}};

	return run(c, &wr, len_bytes);
}

static uint8_t pattern(uint64_t at)
{
	return (uint8_t)(at * 31 + (at >> 8) + 1);
}

/* fill, check and zero: over the whole region. */
static void sweep(struct client *c, const char *mode)
{
	bool fill = strcmp(mode, "fill") == 0, zero = strcmp(mode, "zero") == 0;

	for (uint64_t at = 0; at < c->length; at += BUF_BYTES) {
		uint32_t n =
			(uint32_t)(c->length - at < BUF_BYTES ? c->length - at
							      : BUF_BYTES);

		for (uint32_t i = 0; fill && i < n; i++)
			c->buf[i] = pattern(at + i);
		need(move(c, fill ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ, at,
			  n) == IBV_WC_SUCCESS,
		     "the transfer failed");
		for (uint32_t i = 0; !fill && i < n; i++)
			need(c->buf[i] == (zero ? 0 : pattern(at + i)),
			     "the region holds something else");
	}
}

static void cas(struct client *c)
{
	uint64_t seen = 0, retries = 0, direct = 0;

	for (unsigned i = 0; i < CAS_ROUNDS; i++) {
		for (;;) {
			struct ibv_send_wr wr = {
				.opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
				.wr.atomic = {.remote_addr = c->addr,
					      .rkey = c->rkey,
					      .compare_add = seen,
					      .swap = seen + 1}};
			uint64_t old;

			need(run(c, &wr, 8) == IBV_WC_SUCCESS, "CAS");
			memcpy(&old, c->buf, 8);
			if (old == seen)
				break;
			seen = old;
			retries++;
		}
		seen++;
	}
	/* All but the first are loads and stores on the mapped region. */
	need(aqdv_get_counter(c->context, "direct_ops", &direct) == 0 &&
		     direct > 0,
	     "the region's key was not mapped");
	printf("%d added, %" PRIu64 " retries, %" PRIu64 " direct, now %" PRIu64
	       "\n",
	       CAS_ROUNDS, retries, direct, seen);
}

static void narrow(struct client *c, const char *region)
{
	grant(c, region, "rw", 4096, 4096);
	need(c->length == 4096, "length");
	need(move(c, IBV_WR_RDMA_WRITE, 0, 4096) == IBV_WC_SUCCESS, "inside");
	need(move(c, IBV_WR_RDMA_READ, 4088, 8) == IBV_WC_SUCCESS, "the end");
	need(move(c, IBV_WR_RDMA_READ, 4089, 8) == IBV_WC_REM_ACCESS_ERR,
	     "a window let a READ through behind its end");
}

static void hold(struct client *c)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "/v1/connections/%s/heartbeat",
		       c->id);
	puts("ready");
	(void)fflush(stdout);
	for (;;) {
		json_decref(http(c, path, NULL));
		sleep(1);
	}
}

int main(int argc, char **argv)
{
	struct client c = {0};

	if (argc != 5)
		die("usage: mem_client SOCKET TOKEN MODE REGION");
	c.path = argv[1];
	c.token = argv[2];
	open_nic(&c);
	connect_node(&c);
	if (strcmp(argv[3], "narrow") == 0) {
		narrow(&c, argv[4]);
		return 0;
	}
	grant(&c, argv[4], "rwa", 0, 0);
	if (strcmp(argv[3], "hold") == 0)
		hold(&c);
	else if (strcmp(argv[3], "cas") == 0)
		cas(&c);
	else
		sweep(&c, argv[3]);
	return 0;
}
