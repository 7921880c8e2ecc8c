/* SPDX-License-Identifier: Apache-2.0 */
/* The block server on the looped NIC: who waits for whom. The clock stands, so
 * what nobody answers is never given up. */
#define LOOP_CLOCK_NS 1000000000ull
#include "verbs_pair.h"

#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/landing.h"
#include "block/blk_server.h"
#include "wire/block_kv_wire.h"
#include "wire/block_watch.h"

enum {
	OBJECT = 7,
	REPLY_AT = BLOCK_MESSAGE_MAX,
	VALUE_AT = REPLY_AT + BLOCK_REPLY_MAX,
	VALUE_BYTES = 8000, /* more than a message carries inside */
	LOOKS = 1000,
};

struct client {
	struct side side;
	struct blk_guest *guest;
	uint8_t session[BLOCK_SESSION_BYTES];
	uint32_t tag;
};

struct bench {
	struct pair pair;
	struct blk_server *server;
	uint8_t *mem;
	bool is_spilled; /* it is a file's */
	struct ibv_mr *mr;
	struct client a, b;
};

static enum block_status believe(void *ctx, const char *tenant,
				 const uint8_t by[BLK_BY_BYTES],
				 const uint8_t *ticket, uint32_t len_bytes,
				 struct blk_right *out)
{
	*out = (struct blk_right){
		.object = OBJECT, .end_s = UINT64_MAX, .may_change = true};
	return BLOCK_OK;
}

static uint64_t wall_s(void *ctx)
{
	return 1;
}

static uint64_t now_ns(void *ctx)
{
	return LOOP_CLOCK_NS;
}

/* ---- one client ---------------------------------------------------------- */

static bool connect(struct bench *t, struct client *c)
{
	static const uint8_t by[BLK_BY_BYTES];
	struct side far;
	bool is_new;

	side_make(&t->pair, &c->side, IBV_QPT_RC, 0);
	assert_int_equal(blk_guest_create(t->server, t->pair.pd, "team", by,
					  c->session, &is_new, &c->guest),
			 0);
	far = (struct side){.qp = blk_guest_qp(c->guest)};
	side_init(&far);
	side_init(&c->side);
	side_connect(&t->pair, &far, c->side.qp->qp_num);
	side_connect(&t->pair, &c->side, far.qp->qp_num);
	assert_int_equal(blk_guest_arm(c->guest), 0);
	return is_new;
}

static void come(struct bench *t, struct client *c, uint8_t name)
{
	memset(c->session, name, sizeof(c->session));
	assert_true(connect(t, c));
}

static void hang_up(struct client *c, bool is_gone)
{
	blk_guest_destroy(c->guest, is_gone, LOOP_CLOCK_NS);
	side_break(&c->side);
}

static void leave(struct client *c)
{
	hang_up(c, true);
}

/* Returns when the message lies at the node, which has not looked at it. */
static void say_many(struct client *c, const struct block_op *ops,
		     unsigned count)
{
	struct block_message m = {
		.tag = ++c->tag,
		.reply_at = (uintptr_t)c->side.buf + REPLY_AT,
		.reply_key = c->side.mr->rkey,
		.reply_bytes = BLOCK_REPLY_MAX,
	};
	struct ibv_send_wr wr = {.opcode = IBV_WR_SEND};
	struct block_writer out;
	struct ibv_wc wc;

	memcpy(m.session, c->session, sizeof(m.session));
	side_recv(&c->side, 1, 0, 0);
	block_message_begin(&out, c->side.buf, BLOCK_MESSAGE_MAX);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(block_message_add(&out, &ops[i]), 0);
	assert_int_equal(side_post(&c->side, &wr, 0,
				   (uint32_t)block_message_end(&out, &m)),
			 0);
	wc = pair_wait(c->side.cq);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_SEND);
}

static void say(struct client *c, const struct block_op *op)
{
	say_many(c, op, 1);
}

/* Whether the answer comes; the node looks all the time. */
static bool hears_many(struct bench *t, struct client *c,
		       struct block_result *r, unsigned want)
{
	const struct block_reply_wire *reply =
		(const void *)(c->side.buf + REPLY_AT);
	struct block_result all[BLOCK_OPS_MAX];
	struct ibv_wc wc;
	unsigned count = 0;
	uint32_t tag = 0;
	int n = 0;

	for (unsigned i = 0; i < LOOKS && n == 0; i++) {
		(void)blk_server_step(t->server);
		n = ibv_poll_cq(c->side.cq, 1, &wc);
	}
	if (n != 1)
		return false;
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(block_reply_parse(reply, be32_get(reply->bytes), &tag,
					   all, &count),
			 0);
	assert_int_equal(tag, c->tag);
	assert_int_equal(count, want);
	memcpy(r, all, want * sizeof(*r));
	return true;
}

static bool hears(struct bench *t, struct client *c, struct block_result *r)
{
	return hears_many(t, c, r, 1);
}

static void ask(struct bench *t, struct client *c, const struct block_op *op,
		struct block_result *r)
{
	say(c, op);
	assert_true(hears(t, c, r));
}

/* ---- the node ------------------------------------------------------------ */

static void show_ticket(struct bench *t, struct client *c)
{
	struct block_op open = {.opcode = BLOCK_OPEN,
				.length = 4,
				.value = (const uint8_t *)"good"};
	struct block_result r;

	ask(t, c, &open, &r);
	assert_int_equal(r.status, BLOCK_OK);
}

/* `spilled` is the memory of a file, or NULL. */
static void begin_in(struct bench *t, enum block_kind kind, bool is_chained,
		     uint8_t *spilled)
{
	struct blk_place place = {
		.options = {.kind = kind,
			    .size_bytes = BLOCK_BYTES_MIN,
			    .generation = 1,
			    .identity = is_chained,
			    .is_first = true},
		.object = OBJECT,
		.is_chained = is_chained,
		.is_spilled = spilled != NULL,
	};
	struct blk_server_config config = {
		.judge = believe, .wall_s = wall_s, .now_ns = now_ns};

	*t = (struct bench){0};
	config.context = pair_open(&t->pair);
	t->pair.pd = ibv_alloc_pd(t->pair.ctx);
	assert_int_equal(blk_server_create(&config, &t->server), 0);
	t->is_spilled = spilled != NULL;
	t->mem = spilled ? spilled : aligned_alloc(4096, BLOCK_BYTES_MIN);
	if (!spilled)
		memset(t->mem, 0, BLOCK_BYTES_MIN);
	t->mr = ibv_reg_mr(t->pair.pd, t->mem, BLOCK_BYTES_MIN, PAIR_ACCESS);
	place.pd = t->pair.pd;
	place.mr = t->mr;
	place.mem = t->mem;
	assert_int_equal(blk_server_add(t->server, &place), 0);
	come(t, &t->a, 1);
	come(t, &t->b, 2);
	show_ticket(t, &t->a);
	show_ticket(t, &t->b);
}

static void begin(struct bench *t, enum block_kind kind, bool is_chained)
{
	begin_in(t, kind, is_chained, NULL);
}

static void end_without_block(struct bench *t)
{
	leave(&t->b);
	blk_server_destroy(t->server);
	assert_int_equal(ibv_dereg_mr(t->mr), 0);
	if (t->is_spilled)
		assert_int_equal(munmap(t->mem, BLOCK_BYTES_MIN), 0);
	else
		free(t->mem);
	assert_int_equal(ibv_dealloc_pd(t->pair.pd), 0);
	pair_close(&t->pair);
}

static void end(struct bench *t)
{
	assert_int_equal(blk_server_remove(t->server, 0, 1), 0);
	end_without_block(t);
}

/* ---- tests --------------------------------------------------------------- */

/* A client dies while its value is fetched. Who waits for the block goes on
 * when the node hears of it, though nothing else comes. */
static void who_waits_for_a_dead_client_goes_on(void **state)
{
	struct block_op value = {.opcode = BLOCK_APPEND,
				 .generation = 1,
				 .sequence = 1,
				 .length = VALUE_BYTES};
	struct block_op small = {.opcode = BLOCK_APPEND,
				 .generation = 1,
				 .sequence = 1,
				 .length = 5,
				 .value = (const uint8_t *)"hello"};
	struct block_result r;
	struct bench t;

	(void)state;
	begin(&t, BLOCK_FILE, false);
	value.address = (uintptr_t)t.a.side.buf + VALUE_AT;
	value.key = t.a.side.mr->rkey;
	say(&t.a, &value);
	assert_int_equal(ibv_destroy_qp(t.a.side.qp), 0);
	assert_int_equal(blk_server_step(t.server), 1);
	say(&t.b, &small);
	assert_false(hears(&t, &t.b, &r));
	blk_guest_destroy(t.a.guest, true, LOOP_CLOCK_NS);
	assert_true(hears(&t, &t.b, &r));
	assert_int_equal(r.status, BLOCK_OK);
	assert_int_equal(r.value, 0); /* it is the first in the file */
	assert_int_equal(ibv_dereg_mr(t.a.side.mr), 0);
	assert_int_equal(ibv_destroy_cq(t.a.side.cq), 0);
	free(t.a.side.buf);
	end(&t);
}

static void watch(struct bench *t, struct block_result *r)
{
	struct block_watch_ask_wire ask_wire = {
		.serial = be64_put(BLOCK_WATCH_NOW)};
	struct block_op op = {.opcode = BLOCK_WATCH,
			      .generation = 1,
			      .length = sizeof(ask_wire),
			      .value = (const uint8_t *)&ask_wire};

	ask(t, &t->a, &op, r);
}

/* A chain of one, which may answer as soon as it knows that it is. */
static void be_alone(struct bench *t)
{
	struct blk_chain_config alone = {.epoch = 1,
					 .count = 1,
					 .full = 1,
					 .member = {{.generation = 1}}};

	assert_int_equal(blk_server_configure(t->server, 0, 1, &alone), 0);
}

static void who_may_not_read_tells_no_events(void **state)
{
	struct block_result r;
	struct bench t;

	(void)state;
	begin(&t, BLOCK_FILE, false);
	watch(&t, &r);
	assert_int_equal(r.status, BLOCK_OK);
	leave(&t.a);
	end(&t);
	begin(&t, BLOCK_FILE, true);
	watch(&t, &r);
	assert_int_equal(r.status, BLOCK_ELSEWHERE);
	be_alone(&t);
	watch(&t, &r);
	assert_int_equal(r.status, BLOCK_OK);
	leave(&t.a);
	end(&t);
}

/* A waits for events of a chain: it is told the next one, and it is told when
 * this member is not the one any more that tells them. */
static void who_waits_at_a_chain_is_sent_away(void **state)
{
	struct block_watch_ask_wire ask_wire = {
		.events = be32_put(UINT32_MAX),
		.flags = be32_put(BLOCK_WATCH_HOLD)};
	struct block_op op = {.opcode = BLOCK_WATCH,
			      .generation = 1,
			      .length = sizeof(ask_wire),
			      .value = (const uint8_t *)&ask_wire};
	struct block_op small = {.opcode = BLOCK_APPEND,
				 .generation = 1,
				 .sequence = 1,
				 .length = 5,
				 .value = (const uint8_t *)"hello"};
	struct blk_chain_config behind = {
		.epoch = 2,
		.count = 2,
		.full = 2,
		.member = {{.generation = 1}, {.node = 1, .generation = 2}}};
	struct block_result r, put;
	struct bench t;

	(void)state;
	begin(&t, BLOCK_FILE, true);
	be_alone(&t);
	say(&t.a, &op);
	assert_false(hears(&t, &t.a, &r));
	ask(&t, &t.b, &small, &put);
	assert_int_equal(put.status, BLOCK_OK);
	assert_true(hears(&t, &t.a, &r));
	assert_int_equal(r.status, BLOCK_OK);
	assert_true(r.length > sizeof(struct block_watch_wire));
	ask_wire.serial = be64_put(1);
	say(&t.a, &op);
	assert_false(hears(&t, &t.a, &r));
	assert_int_equal(blk_server_configure(t.server, 0, 1, &behind), 0);
	blk_server_tick(t.server, LOOP_CLOCK_NS + 1000000000);
	assert_true(hears(&t, &t.a, &r));
	assert_int_equal(r.status, BLOCK_ELSEWHERE);
	leave(&t.a);
	end(&t);
}

static struct block_op key_op(enum block_opcode opcode, uint64_t sequence,
			      const uint8_t *buf, uint32_t value_bytes)
{
	return (struct block_op){
		.opcode = opcode,
		.generation = 1,
		.sequence = sequence,
		.arg = block_kv_slot(block_kv_hash("key", 3)),
		.length = (uint32_t)sizeof(struct block_kv_wire) + 3 +
			  value_bytes,
		.value = buf};
}

/* Answers of a delete that finds nothing and of a put behind it are lost, and
 * the message is sent again. The delete must not find what was put. */
static void a_group_that_is_repeated_keeps_its_order(void **state)
{
	struct block_kv_wire head = {.version = be64_put(BLOCK_KV_ANY),
				     .key_bytes = be32_put(3)};
	uint8_t key[sizeof(head) + 3], put[sizeof(head) + 8];
	struct block_op ops[] = {key_op(BLOCK_KV_DELETE, 1, key, 0),
				 key_op(BLOCK_KV_PUT, 2, put, 5)};
	struct block_op get = key_op(BLOCK_KV_GET, 0, key, 0);
	struct block_result r[2];
	struct bench t;

	(void)state;
	memcpy(key, &head, sizeof(head));
	memcpy(key + sizeof(head), "key", 3);
	head.value_bytes = be32_put(5);
	memcpy(put, &head, sizeof(head));
	memcpy(put + sizeof(head), "keyvalue", 8);
	begin(&t, BLOCK_EKV, false);
	for (unsigned i = 0; i < 2; i++) {
		say_many(&t.a, ops, 2);
		assert_true(hears_many(&t, &t.a, r, 2));
	}
	assert_int_equal(r[0].status, BLOCK_NO_KEY);
	assert_int_equal(r[1].status, BLOCK_LATER);
	ask(&t, &t.a, &ops[1], r);
	assert_int_equal(r[0].status, BLOCK_OK);
	ask(&t, &t.a, &get, r);
	assert_int_equal(r[0].status, BLOCK_OK);
	assert_int_equal(r[0].length, 5);
	leave(&t.a);
	end(&t);
}

static void tick_after(struct bench *t, uint64_t ms)
{
	blk_server_tick(t->server, LOOP_CLOCK_NS + ms * 1000000);
}

/* A takes an item and loses its connection. */
static uint64_t take_and_hang_up(struct bench *t, bool is_chained)
{
	struct block_op put = {.opcode = BLOCK_PUT,
			       .generation = 1,
			       .sequence = 1,
			       .length = 4,
			       .value = (const uint8_t *)"item"};
	struct block_op take = {
		.opcode = BLOCK_GET, .generation = 1, .sequence = 1, .arg = 1};
	struct block_result r;

	begin(t, BLOCK_QUEUE, is_chained);
	if (is_chained)
		be_alone(t);
	ask(t, &t->b, &put, &r);
	assert_int_equal(r.status, BLOCK_OK);
	ask(t, &t->a, &take, &r);
	assert_int_equal(r.status, BLOCK_OK);
	hang_up(&t->a, false);
	return r.value;
}

static enum block_status take(struct bench *t, struct client *c,
			      uint64_t sequence)
{
	struct block_op op = {.opcode = BLOCK_GET,
			      .generation = 1,
			      .sequence = sequence,
			      .arg = 1};
	struct block_result r;

	ask(t, c, &op, &r);
	return r.status;
}

/* Who comes back soon has its item and may acknowledge it. */
static void who_comes_back_soon_keeps_its_item(void **state)
{
	struct block_op ack = {
		.opcode = BLOCK_ACK, .generation = 1, .sequence = 2};
	struct block_result r;
	struct bench t;

	(void)state;
	ack.arg = take_and_hang_up(&t, false);
	tick_after(&t, BLK_ITEMS_KEEP_MS - 1);
	assert_int_equal(take(&t, &t.b, 2), BLOCK_EMPTY);
	assert_false(connect(&t, &t.a));
	show_ticket(&t, &t.a);
	tick_after(&t, BLK_ITEMS_KEEP_MS + 1);
	assert_int_equal(take(&t, &t.b, 3), BLOCK_EMPTY);
	ask(&t, &t.a, &ack, &r);
	assert_int_equal(r.status, BLOCK_OK);
	leave(&t.a);
	end(&t);
}

/* Who does not loses it to others, and nothing else. */
static void items_of_who_is_away_are_for_others(void **state)
{
	struct bench t;

	(void)take_and_hang_up(&t, *(bool *)*state);
	tick_after(&t, BLK_ITEMS_KEEP_MS + 1);
	assert_int_equal(take(&t, &t.b, 2), BLOCK_OK);
	/* It repeats itself, and is told to ask for another one. */
	assert_false(connect(&t, &t.a));
	show_ticket(&t, &t.a);
	assert_int_equal(take(&t, &t.a, 1), BLOCK_LATER);
	assert_int_equal(take(&t, &t.a, 2), BLOCK_EMPTY);
	hang_up(&t.a, false);
	tick_after(&t, BLK_SESSION_KEEP_MS + 1);
	assert_true(connect(&t, &t.a));
	leave(&t.a);
	end(&t);
}

static struct block_op append_op(uint64_t sequence)
{
	return (struct block_op){.opcode = BLOCK_APPEND,
				 .generation = 1,
				 .sequence = sequence,
				 .length = 5,
				 .value = (const uint8_t *)"hello"};
}

static int image_of(struct bench *t, enum blk_image_how how, uint64_t id,
		    struct blk_image *out)
{
	const struct blk_image_id name = {.object = OBJECT, .image = id};

	return blk_server_image(t->server, 0, 1, how, &name, out);
}

/* What would change a halted block waits until its image is taken; who reads
 * does not. */
static void changes_wait_for_an_image(void **state)
{
	struct block_op first = append_op(1), second = append_op(2);
	struct block_op stat = {.opcode = BLOCK_STAT, .generation = 1};
	struct blk_image image;
	struct block_result r;
	struct bench t;

	begin(&t, BLOCK_FILE, *(bool *)*state);
	if (*(bool *)*state)
		be_alone(&t);
	ask(&t, &t.b, &first, &r);
	assert_int_equal(image_of(&t, BLK_IMAGE_HALTED, 5, &image), -ETIMEDOUT);
	assert_int_equal(blk_server_halt(t.server, 0, 2, 5), -ENOENT);
	assert_int_equal(blk_server_halt(t.server, 0, 1, 5), 0);
	assert_int_equal(blk_server_halt(t.server, 0, 1, 6), -EAGAIN);
	say(&t.b, &second);
	assert_false(hears(&t, &t.b, &r));
	ask(&t, &t.a, &stat, &r);
	assert_int_equal(r.status, BLOCK_OK);
	assert_int_equal(image_of(&t, BLK_IMAGE_HALTED, 6, &image), -ETIMEDOUT);
	assert_int_equal(image_of(&t, BLK_IMAGE_HALTED, 5, &image), 0);
	assert_true(hears(&t, &t.b, &r));
	assert_int_equal(r.status, BLOCK_OK);
	assert_int_equal(image.bytes, 5); /* only the first record */
	blk_image_release(&image);
	leave(&t.a);
	end(&t);
}

/* Nobody takes the image: changes go on by the clock. */
static void changes_do_not_wait_for_ever(void **state)
{
	struct block_op op = append_op(1);
	struct blk_image image;
	struct block_result r;
	struct bench t;

	(void)state;
	begin(&t, BLOCK_FILE, false);
	(void)blk_server_hear(t.server, 0, 1);
	assert_int_equal(blk_server_halt(t.server, 0, 1, 5), 0);
	say(&t.b, &op);
	tick_after(&t, BLK_HALT_MS - 1);
	assert_false(hears(&t, &t.b, &r));
	tick_after(&t, BLK_HALT_MS);
	assert_true(hears(&t, &t.b, &r));
	assert_int_equal(r.status, BLOCK_OK);
	assert_int_equal(image_of(&t, BLK_IMAGE_HALTED, 5, &image), -ETIMEDOUT);
	/* A block that goes away lets those go that wait. */
	assert_int_equal(blk_server_halt(t.server, 0, 1, 6), 0);
	op.sequence = 2;
	say(&t.b, &op);
	assert_false(hears(&t, &t.b, &r));
	(void)!blk_server_remove(t.server, 0, 1);
	assert_true(hears(&t, &t.b, &r));
	assert_int_equal(r.status, BLOCK_STALE);
	leave(&t.a);
	end_without_block(&t);
}

/* ---- blocks in files ----------------------------------------------------- */

static void on_fault(int sig, siginfo_t *info, void *context)
{
	if (!landing_take((uintptr_t)info->si_addr, context))
		(void)signal(sig, SIG_DFL);
}

/* A file of one block, and its memory. */
static uint8_t *make_file(FILE **file)
{
	struct sigaction a = {.sa_flags = SA_SIGINFO, .sa_sigaction = on_fault};
	void *mem;

	assert_int_equal(sigaction(SIGBUS, &a, NULL), 0);
	*file = tmpfile();
	assert_non_null(*file);
	assert_int_equal(ftruncate(fileno(*file), BLOCK_BYTES_MIN), 0);
	mem = mmap(NULL, BLOCK_BYTES_MIN, PROT_READ | PROT_WRITE, MAP_SHARED,
		   fileno(*file), 0);
	assert_ptr_not_equal(mem, MAP_FAILED);
	return mem;
}

/* A put of "value", and a get. */
struct pair_of_ops {
	uint8_t key[sizeof(struct block_kv_wire) + 3];
	uint8_t value[sizeof(struct block_kv_wire) + 8];
	struct block_op put, get;
};

static void make_ops(struct pair_of_ops *p)
{
	struct block_kv_wire head = {.version = be64_put(BLOCK_KV_ANY),
				     .key_bytes = be32_put(3)};

	memcpy(p->key, &head, sizeof(head));
	memcpy(p->key + sizeof(head), "key", 3);
	head.value_bytes = be32_put(5);
	memcpy(p->value, &head, sizeof(head));
	memcpy(p->value + sizeof(head), "keyvalue", 8);
	p->put = key_op(BLOCK_KV_PUT, 1, p->value, 5);
	p->get = key_op(BLOCK_KV_GET, 0, p->key, 0);
}

/* What lies beyond a file's end is the same fault as a page that the disk does
 * not bring. */
static void a_disk_that_fails_breaks_the_block_alone(void **state)
{
	static const enum block_kind kinds[] = {BLOCK_EKV, BLOCK_FILE};
	struct block_op append = {.opcode = BLOCK_APPEND,
				  .generation = 1,
				  .sequence = 1,
				  .length = 5,
				  .value = (const uint8_t *)"hello"};
	struct pair_of_ops p;
	struct block_result r;
	struct bench t;
	FILE *file;

	(void)state;
	make_ops(&p);
	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++) {
		bool is_ekv = kinds[i] == BLOCK_EKV;

		begin_in(&t, kinds[i], false, make_file(&file));
		append.sequence = 1;
		ask(&t, &t.a, is_ekv ? &p.put : &append, &r);
		assert_int_equal(r.status, BLOCK_OK);
		assert_int_equal(ftruncate(fileno(file), 0), 0);
		append.sequence = 2;
		for (unsigned k = 0; k < 2; k++) {
			ask(&t, &t.a, is_ekv ? &p.get : &append, &r);
			assert_int_equal(r.status, BLOCK_BROKEN);
		}
		assert_int_equal(block_status_errno(r.status), -EIO);
		leave(&t.a);
		end(&t);
		(void)fclose(file);
	}
}

static void a_block_comes_back_to_memory_as_it_was(void **state)
{
	uint8_t *mem = aligned_alloc(4096, BLOCK_BYTES_MIN);
	struct pair_of_ops p;
	struct block_result r;
	struct ibv_mr *mr;
	struct bench t;
	FILE *file;

	(void)state;
	make_ops(&p);
	begin_in(&t, BLOCK_EKV, false, make_file(&file));
	ask(&t, &t.a, &p.put, &r);
	assert_int_equal(r.status, BLOCK_OK);
	mr = ibv_reg_mr(t.pair.pd, mem, BLOCK_BYTES_MIN, PAIR_ACCESS);
	assert_int_equal(blk_server_bring_back(t.server, 0, 2, mem, mr),
			 -ENOENT);
	assert_int_equal(blk_server_bring_back(t.server, 0, 1, mem, mr), 0);
	/* Nobody needs the file any more. */
	assert_int_equal(ftruncate(fileno(file), 0), 0);
	ask(&t, &t.a, &p.get, &r);
	assert_int_equal(r.status, BLOCK_OK);
	assert_int_equal(r.length, 5);
	assert_memory_equal(r.data, "value", 5);
	ask(&t, &t.a, &p.put, &r); /* it is the same one, which was answered */
	assert_int_equal(r.status, BLOCK_OK);
	assert_int_equal(blk_server_bring_back(t.server, 0, 1, mem, mr),
			 -ENOENT);
	t.mr = mr;
	leave(&t.a);
	end(&t);
	free(mem);
	(void)fclose(file);
}

int main(void)
{
	static bool no = false, yes = true;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_waits_for_a_dead_client_goes_on),
		cmocka_unit_test(who_may_not_read_tells_no_events),
		cmocka_unit_test(who_waits_at_a_chain_is_sent_away),
		cmocka_unit_test(a_group_that_is_repeated_keeps_its_order),
		cmocka_unit_test(who_comes_back_soon_keeps_its_item),
		cmocka_unit_test_prestate(changes_wait_for_an_image, &no),
		cmocka_unit_test_prestate(changes_wait_for_an_image, &yes),
		cmocka_unit_test(changes_do_not_wait_for_ever),
		cmocka_unit_test_prestate(items_of_who_is_away_are_for_others,
					  &no),
		cmocka_unit_test_prestate(items_of_who_is_away_are_for_others,
					  &yes),
		cmocka_unit_test(a_disk_that_fails_breaks_the_block_alone),
		cmocka_unit_test(a_block_comes_back_to_memory_as_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
