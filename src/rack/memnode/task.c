/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks at the vault. The node's lock guards the list; what is done outside of
 * it belongs to the thread. */
#include "task.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/crc.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"

enum what {
	SAVE,
	MANIFEST,
	ERASE,
	LOAD,
};

struct task {
	struct list link;
	uint64_t id; /* of a load: 0 */
	enum what what;
	char place[VAULT_PLACE_MAX];
	char image[VAULT_IMAGE_MAX];
	uint64_t index, generation;
	struct blk_image_id block;
	bool freeze;
	json_t *text;
	struct mem_block *m; /* of a load */
	struct blk_place into;
	/* The end. */
	bool is_done, is_told;
	int err;
	char why[MEM_TASK_WHY];
	uint64_t bytes, crc;
	uint32_t flags, items;
	json_t *slots; /* of a store's block; NULL: none */
};

struct mem_tasks {
	pthread_t thread;
	pthread_cond_t wake;
	bool stops;
	struct list list; /* in the order in which they came */
	unsigned count;
};

#define MANIFEST_NAME "manifest.json"

static void object_name(uint64_t number, char out[VAULT_OBJECT_MAX])
{
	(void)snprintf(out, VAULT_OBJECT_MAX, "%" PRIu64 ".blk", number);
}

/* ---- saving -------------------------------------------------------------- */

static struct mem_block *find_block(struct mem_node *node, const struct task *t)
{
	struct list *all = &node->blocks->list;

	for (struct list *l = all->next; l != all; l = l->next) {
		struct mem_block *m = container_of(l, struct mem_block, node);

		if (m->index == t->index && m->generation == t->generation)
			return m;
	}
	return NULL;
}

/* The block stays where it is while it is busy. -EBUSY: later. */
static int pin(struct mem_node *node, const struct task *t,
	       struct mem_block **out)
{
	struct mem_block *m;

	pthread_mutex_lock(&node->lock);
	m = node->blocks ? find_block(node, t) : NULL;
	if (m && !m->is_busy) {
		m->is_busy = true;
		*out = m;
	}
	pthread_mutex_unlock(&node->lock);
	if (!m)
		return error_set(-ENOENT, "the node has no such block");
	return *out ? 0 : -EBUSY;
}

static void unpin(struct mem_node *node, struct mem_block *m)
{
	pthread_mutex_lock(&node->lock);
	m->is_busy = false;
	pthread_mutex_unlock(&node->lock);
}

/* [lo, hi, frozen lo, frozen hi, to, token, batch], as blk_image.h has them. */
static json_t *slots_json(const struct blk_image *image)
{
	struct blk_image_slots s;

	if (blk_image_slots(image, &s))
		return NULL;
	return json_pack("[I, I, I, I, I, I, I]", (json_int_t)s.lo,
			 (json_int_t)s.hi, (json_int_t)s.frozen_lo,
			 (json_int_t)s.frozen_hi, (json_int_t)s.to,
			 (json_int_t)s.token, (json_int_t)s.batch);
}

static int write_image(struct task *t, struct blk_image *image)
{
	char name[VAULT_OBJECT_MAX];
	struct iovec parts[2];

	blk_image_sum(image);
	parts[0] = (struct iovec){&image->head, sizeof(image->head)};
	parts[1] = (struct iovec){(void *)(uintptr_t)image->payload,
				  (size_t)image->bytes};
	object_name(t->block.number, name);
	t->bytes = sizeof(image->head) + image->bytes;
	t->crc = blk_image_crc(image);
	t->flags = be32_get(image->head.flags);
	t->items = be32_get(image->head.items);
	t->slots = slots_json(image);
	return vault_put(t->place, t->image, name, parts, 2);
}

static int save(struct mem_node *node, struct task *t)
{
	struct mem_block *m = NULL;
	struct blk_image image;
	int err = pin(node, t, &m);

	if (err)
		return err;
	err = blk_server_image(node->blocks->server, m->index, m->generation,
			       t->freeze, &t->block, &image);
	if (!err) {
		err = write_image(t, &image);
		blk_image_release(&image);
	}
	unpin(node, m);
	return err;
}

/* ---- manifests ----------------------------------------------------------- */

/* {"manifest": {...}, "crc": "16 digits of the sum of the other member's text,
 * with its members in order and no spaces"} */
static char *manifest_text(json_t *body, uint64_t *crc)
{
	char *text = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);

	*crc = text ? crc64(0, text, strlen(text)) : 0;
	return text;
}

static int write_manifest(const struct task *t)
{
	uint64_t crc;
	char *body = manifest_text(t->text, &crc), *whole = NULL;
	struct iovec part;
	int len, err;

	len = body ? asprintf(&whole,
			      "{\"crc\": \"%016" PRIx64 "\",\n"
			      "\"manifest\": %s}\n",
			      crc, body)
		   : -1;
	free(body);
	if (len < 0)
		return error_set(-ENOMEM, "no memory for a manifest");
	part = (struct iovec){whole, (size_t)len};
	err = vault_put(t->place, t->image, MANIFEST_NAME, &part, 1);
	free(whole);
	return err;
}

/* The manifest that is there, if it is as it was written; the caller's. */
static int read_manifest(const struct task *t, json_t **out)
{
	json_t *whole = NULL, *body;
	const char *said;
	char *text, sum[20];
	uint64_t crc;
	size_t bytes = 0;
	void *buf = NULL;
	int err = vault_get(t->place, t->image, MANIFEST_NAME, MEM_MANIFEST_MAX,
			    &buf, &bytes);

	if (err)
		return err;
	whole = json_loadb(buf, bytes, JSON_REJECT_DUPLICATES, NULL);
	free(buf);
	body = json_object_get(whole, "manifest");
	said = json_string_value(json_object_get(whole, "crc"));
	text = json_is_object(body) ? manifest_text(body, &crc) : NULL;
	if (text)
		(void)snprintf(sum, sizeof(sum), "%016" PRIx64, crc);
	if (!text || !said || strcmp(said, sum) != 0)
		err = error_set(-EBADMSG,
				"%s/" MANIFEST_NAME " is damaged: its sum is "
				"wrong",
				t->image);
	else
		*out = json_incref(body);
	free(text);
	json_decref(whole);
	return err;
}

/* ---- loading ------------------------------------------------------------- */

/* What the manifest has for a block. */
struct listed {
	uint64_t crc;
	uint64_t number; /* that it had when it was saved */
	uint64_t lo, hi; /* slots of a store that come from it */
};

static int parse_listed(const json_t *row, bool has_slots, struct listed *out)
{
	const char *text = json_string_value(json_object_get(row, "crc"));
	int err =
		ctl_field_u64(row, "number", true, 0, INT64_MAX, &out->number);

	if (!err && has_slots)
		err = ctl_field_u64(row, "lo", true, 0, UINT32_MAX, &out->lo);
	if (!err && has_slots)
		err = ctl_field_u64(row, "hi", true, 0, UINT32_MAX, &out->hi);
	if (err || !text || sscanf(text, "%16" SCNx64, &out->crc) != 1)
		return -EBADMSG;
	return 0;
}

/* Blocks of a store are counted anew in each image: some had ended, and their
 * numbers are missing. */
static int find_listed(const json_t *manifest, const struct task *t,
		       struct listed *out)
{
	const json_t *rows = json_object_get(manifest, "blocks"), *row;
	bool is_store = t->into.options.kind == BLOCK_EKV;
	size_t i;

	if ((uint64_t)json_integer_value(json_object_get(manifest, "image")) !=
	    t->block.image)
		return error_set(-EBADMSG,
				 "%s/" MANIFEST_NAME " is of another image",
				 t->image);
	json_array_foreach(rows, i, row)
	{
		if (parse_listed(row, is_store, out) ||
		    (is_store ? i : out->number) != t->block.number)
			continue;
		return 0;
	}
	return error_set(-EBADMSG, "%s/" MANIFEST_NAME " has no block %" PRIu64,
			 t->image, t->block.number);
}

static int read_block(const struct task *t, const struct listed *row,
		      void **buf, struct blk_image *image)
{
	struct blk_image_id id = t->block;
	char name[VAULT_OBJECT_MAX];
	size_t bytes = 0;
	int err;

	id.number = row->number;
	object_name(id.number, name);
	err = vault_get(t->place, t->image, name,
			(size_t)t->into.options.size_bytes +
				sizeof(struct blk_image_wire),
			buf, &bytes);
	if (err)
		return err;
	err = blk_image_parse(*buf, bytes, &id, image);
	if (!err && blk_image_crc(image) != row->crc)
		err = error_set(-EBADMSG, "the manifest has another sum");
	if (!err) {
		image->lo = (uint32_t)row->lo;
		image->hi = (uint32_t)row->hi;
	}
	return err ? error_prefix(err, "%s/%s is refused: ", t->image, name)
		   : 0;
}

static int load(const struct task *t, void **buf, struct blk_image *image)
{
	struct listed row = {0};
	json_t *manifest = NULL;
	int err = read_manifest(t, &manifest);

	if (!err)
		err = find_listed(manifest, t, &row);
	json_decref(manifest);
	return err ? err : read_block(t, &row, buf, image);
}

/* Installs the block, or gives it up; lets the lock go. */
static void end_load(struct mem_node *node, struct task *t)
{
	struct blk_image image;
	void *buf = NULL;
	int err = load(t, &buf, &image);

	t->into.image = &image;
	pthread_mutex_lock(&node->lock);
	mem_block_filled(node, t->m, &t->into, err);
	pthread_mutex_unlock(&node->lock);
	free(buf);
}

/* ---- the thread ---------------------------------------------------------- */

static int erase(const struct task *t)
{
	/* Without its manifest nothing of it is an image any more. */
	int err = vault_remove(t->place, t->image, MANIFEST_NAME);

	return err ? err : vault_erase(t->place, t->image);
}

static int work(struct mem_node *node, struct task *t)
{
	switch (t->what) {
	case SAVE:
		return save(node, t);
	case MANIFEST:
		return write_manifest(t);
	case ERASE:
		return erase(t);
	case LOAD:
		end_load(node, t);
		return 0;
	}
	return -EINVAL;
}

static void drop(struct mem_tasks *all, struct task *t)
{
	list_remove(&t->link);
	all->count--;
	json_decref(t->text);
	json_decref(t->slots);
	free(t);
}

static struct task *next(struct mem_tasks *all)
{
	for (struct list *l = all->list.next; l != &all->list; l = l->next) {
		struct task *t = container_of(l, struct task, link);

		if (!t->is_done)
			return t;
	}
	return NULL;
}

static void note_end(struct mem_node *node, struct task *t, int err)
{
	t->err = err;
	t->is_done = true;
	if (err) {
		(void)snprintf(t->why, sizeof(t->why), "%s", error_last());
		log_warn("memnode", "vault: %s", t->why);
	}
	if (t->what == LOAD)
		drop(node->tasks, t);
	if (node->control.wake)
		node->control.wake(node->control.ctx);
}

static void wait_a_little(void)
{
	const struct timespec t = {.tv_nsec = MEM_TASK_PAUSE_MS * 1000000};

	(void)nanosleep(&t, NULL);
}

static void *run(void *arg)
{
	struct mem_node *node = arg;
	struct mem_tasks *all = node->tasks;

	(void)pthread_setname_np(pthread_self(), "aq-vault");
	pthread_mutex_lock(&node->lock);
	while (!all->stops) {
		struct task *t = next(all);
		int err;

		if (!t) {
			(void)pthread_cond_wait(&all->wake, &node->lock);
			continue;
		}
		pthread_mutex_unlock(&node->lock);
		error_clear();
		err = work(node, t);
		if (err == -EBUSY)
			wait_a_little();
		pthread_mutex_lock(&node->lock);
		if (err == -EBUSY) { /* others first */
			list_remove(&t->link);
			list_append(&all->list, &t->link);
		} else {
			note_end(node, t, err);
		}
	}
	pthread_mutex_unlock(&node->lock);
	return NULL;
}

static int start(struct mem_node *node)
{
	struct mem_tasks *all;
	sigset_t every, before;
	int err;

	if (node->tasks)
		return 0;
	all = calloc(1, sizeof(*all));
	if (!all)
		return error_set(-ENOMEM, "no memory for tasks");
	pthread_cond_init(&all->wake, NULL);
	list_init(&all->list);
	node->tasks = all;
	sigfillset(&every);
	(void)pthread_sigmask(SIG_SETMASK, &every, &before);
	err = pthread_create(&all->thread, NULL, run, node);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!err)
		return 0;
	node->tasks = NULL;
	pthread_cond_destroy(&all->wake);
	free(all);
	return error_set(-err, "no thread for the vault: %s", strerror(err));
}

void mem_tasks_stop(struct mem_node *node)
{
	struct mem_tasks *all = node->tasks;

	if (!all)
		return;
	pthread_mutex_lock(&node->lock);
	all->stops = true;
	(void)pthread_cond_signal(&all->wake);
	pthread_mutex_unlock(&node->lock);
	(void)pthread_join(all->thread, NULL);
	while (!list_is_empty(&all->list)) {
		struct task *t =
			container_of(all->list.next, struct task, link);

		if (t->m)
			t->m->is_busy = false; /* it goes with the others */
		drop(all, t);
	}
	pthread_cond_destroy(&all->wake);
	free(all);
	node->tasks = NULL;
}

/* ---- orders -------------------------------------------------------------- */

static int check_place(const struct mem_node *node, const char *place)
{
	if (node->vault[0] && strcmp(place, node->vault) == 0)
		return 0;
	return error_set(-EACCES,
			 "node %s may not use the vault %.100s: its own "
			 "rack.vault is %s",
			 node->name, place,
			 node->vault[0] ? node->vault : "not set");
}

static int take_text(const json_t *row, const char *name, char *out,
		     size_t room)
{
	const char *text = json_string_value(json_object_get(row, name));

	if (!text || strlen(text) >= room)
		return error_set(-EINVAL, "a task has no \"%s\"", name);
	memcpy(out, text, strlen(text) + 1);
	return 0;
}

static int take_what(const json_t *row, enum what *out)
{
	static const char *const words[] = {"save", "manifest", "erase"};
	const char *text = json_string_value(json_object_get(row, "do"));

	for (size_t i = 0; text && i < ARRAY_LEN(words); i++) {
		if (strcmp(text, words[i]) != 0)
			continue;
		*out = (enum what)i;
		return 0;
	}
	return error_set(-EINVAL, "no task is a '%.20s'", text ? text : "");
}

static int parse_save(const json_t *row, struct task *t)
{
	int err = ctl_field_u64(row, "index", true, 0, BLK_INDEX_MAX - 1,
				&t->index);

	if (!err)
		err = ctl_field_u64(row, "generation", true, 1, INT64_MAX,
				    &t->generation);
	if (!err)
		err = ctl_field_u64(row, "object", true, 1, INT64_MAX,
				    &t->block.object);
	if (!err)
		err = ctl_field_u64(row, "number", true, 0, INT64_MAX,
				    &t->block.number);
	t->freeze = json_is_true(json_object_get(row, "freeze"));
	return err ? err
		   : ctl_field_u64(row, "image_id", true, 1, INT64_MAX,
				   &t->block.image);
}

static int parse(const json_t *row, struct task *t)
{
	int err = take_what(row, &t->what);

	if (!err)
		err = take_text(row, "vault", t->place, sizeof(t->place));
	if (!err)
		err = take_text(row, "image", t->image, sizeof(t->image));
	if (!err && t->what == SAVE)
		err = parse_save(row, t);
	if (!err && t->what == MANIFEST)
		t->text = json_deep_copy(json_object_get(row, "text"));
	if (!err && t->what == MANIFEST && !t->text)
		err = error_set(-EINVAL, "a manifest has no \"text\"");
	return err;
}

static bool is_known(const struct mem_tasks *all, uint64_t id)
{
	for (const struct list *l = all->list.next; l != &all->list;
	     l = l->next)
		if (container_of(l, const struct task, link)->id == id)
			return true;
	return false;
}

static void append(struct mem_tasks *all, struct task *t)
{
	list_append(&all->list, &t->link);
	all->count++;
	(void)pthread_cond_signal(&all->wake);
}

static void take(struct mem_node *node, const json_t *row)
{
	struct mem_tasks *all = node->tasks;
	struct task *t;
	uint64_t id = 0;
	int err = ctl_field_u64(row, "id", true, 1, INT64_MAX, &id);

	if (err || is_known(all, id) || all->count >= MEM_TASKS_MAX)
		return;
	t = calloc(1, sizeof(*t));
	if (!t)
		return; /* it comes again */
	t->id = id;
	err = parse(row, t);
	if (!err)
		err = check_place(node, t->place);
	append(all, t);
	if (err)
		note_end(node, t, err);
}

static void forget_told(struct mem_tasks *all)
{
	struct list *l, *next_one;

	for (l = all->list.next; l != &all->list; l = next_one) {
		struct task *t = container_of(l, struct task, link);

		next_one = l->next;
		if (t->is_done && t->is_told)
			drop(all, t);
	}
}

void mem_tasks_hear(struct mem_node *node, const json_t *answer)
{
	const json_t *rows = json_object_get(answer, "tasks"), *row;
	size_t i;

	lock_assert_mutex_held(&node->lock);
	if (node->tasks)
		forget_told(node->tasks);
	if (!json_array_size(rows))
		return;
	if (start(node)) {
		log_warn("memnode", "%s", error_last());
		return;
	}
	json_array_foreach(rows, i, row) take(node, row);
}

void mem_tasks_say(struct mem_node *node, json_t *beat)
{
	const struct mem_tasks *all = node->tasks;
	json_t *rows, *row;

	lock_assert_mutex_held(&node->lock);
	if (!all)
		return;
	rows = json_array();
	for (struct list *l = all->list.next; l != &all->list; l = l->next) {
		struct task *t = container_of(l, struct task, link);
		char code[32], crc[20];

		t->is_told =
			t->is_done && json_array_size(rows) < MEM_TASKS_TOLD;
		if (!t->is_told)
			continue;
		(void)snprintf(code, sizeof(code), "-%s",
			       t->err && error_name(t->err) ? error_name(t->err)
							    : "EIO");
		(void)snprintf(crc, sizeof(crc), "%016" PRIx64, t->crc);
		row = json_pack("{s:I, s:s, s:s, s:I, s:s, s:i, s:I}", "id",
				(json_int_t)t->id, "end",
				t->err ? code : "done", "why", t->why, "bytes",
				(json_int_t)t->bytes, "crc", crc, "flags",
				(int)t->flags, "items", (json_int_t)t->items);
		if (t->slots)
			(void)json_object_set(row, "slots", t->slots);
		(void)json_array_append_new(rows, row);
	}
	(void)json_object_set_new(beat, "tasks", rows);
}

/* ---- blocks from images -------------------------------------------------- */

int mem_load_parse(const json_t *row, struct mem_load *out)
{
	int err = take_text(row, "vault", out->place, sizeof(out->place));

	if (!err)
		err = take_text(row, "image", out->image, sizeof(out->image));
	if (!err)
		err = ctl_field_u64(row, "image_id", true, 1, INT64_MAX,
				    &out->id.image);
	return err ? err
		   : ctl_field_u64(row, "object", true, 1, INT64_MAX,
				   &out->id.object);
}

int mem_task_load(struct mem_node *node, struct mem_block *m,
		  const struct blk_place *place, const struct mem_load *load)
{
	struct task *t;
	int err = check_place(node, load->place);

	if (!err)
		err = start(node);
	if (err)
		return err;
	t = calloc(1, sizeof(*t));
	if (!t)
		return error_set(-ENOMEM, "no memory for a task");
	t->what = LOAD;
	t->m = m;
	t->into = *place;
	t->block = load->id;
	memcpy(t->place, load->place, sizeof(t->place));
	memcpy(t->image, load->image, sizeof(t->image));
	append(node->tasks, t);
	return 0;
}
