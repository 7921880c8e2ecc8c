/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks at the vault. The node's lock guards the list; what is done outside of
 * it belongs to the thread. */
#include "task.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/lock.h"
#include "base/log.h"
#include "spill.h"

enum what {
	SAVE,
	MANIFEST,
	ERASE,
	HALT,
	LOAD,
};

struct task {
	struct list link;
	uint64_t id; /* of a load: 0 */
	enum what what;
	struct mem_image image;
	uint64_t index, generation;
	enum blk_image_how how;
	json_t *text;
	struct mem_block *m; /* of a load */
	struct blk_place into;
	/* The end. */
	bool is_done, is_told;
	int err;
	char why[MEM_TASK_WHY];
	struct mem_image_sum sum;
};

struct mem_tasks {
	pthread_t thread;
	pthread_cond_t wake;
	bool stops;
	atomic_bool is_over; /* the same, for who waits for a vault */
	struct list list;    /* in the order in which they came */
	unsigned count;
};

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

static int save(struct mem_node *node, struct task *t)
{
	struct mem_block *m = NULL;
	struct blk_image image;
	int err = pin(node, t, &m);

	if (err)
		return err;
	err = blk_server_image(node->blocks->server, m->index, m->generation,
			       t->how, &t->image.block, &image);
	if (!err) {
		err = mem_image_write(&t->image, &image, &t->sum);
		blk_image_release(&image);
	}
	/* Who read it then found zeros. */
	if (!err && m->is_spilled &&
	    spill_is_bad(node->spill, m->memory.addr, m->memory.size_bytes))
		err = error_set(-EIO, "the disk of the spill tier fails");
	unpin(node, m);
	return err;
}

static int halt(struct mem_node *node, const struct task *t)
{
	return node->blocks ? blk_server_halt(node->blocks->server,
					      (uint32_t)t->index, t->generation,
					      t->image.block.image)
			    : error_set(-ENOENT, "the node has no such block");
}

/* Installs the block, or gives it up; lets the lock go. */
static void end_load(struct mem_node *node, struct task *t)
{
	struct blk_image image;
	void *buf = NULL;
	int err = mem_image_read(&t->image, &t->into.options, &buf, &image);

	t->into.image = &image;
	pthread_mutex_lock(&node->lock);
	mem_block_filled(node, t->m, &t->into, err);
	pthread_mutex_unlock(&node->lock);
	free(buf);
}

/* ---- the thread ---------------------------------------------------------- */

static int work(struct mem_node *node, struct task *t)
{
	switch (t->what) {
	case SAVE:
		return save(node, t);
	case MANIFEST:
		return mem_manifest_write(&t->image, t->text);
	case ERASE:
		return mem_image_erase(&t->image);
	case HALT:
		return halt(node, t);
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
	json_decref(t->sum.slots);
	vault_key_forget(&t->image.place.key);
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
	/* It was for this task. */
	vault_key_forget(&t->image.place.key);
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
	atomic_store_explicit(&all->is_over, true, memory_order_relaxed);
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

/* Only to where this node's own rack.ini says, whatever a task names. */
static int check_place(const struct mem_node *node, struct mem_tasks *all,
		       struct vault_place *place)
{
	if (!node->vault.path[0] || strcmp(place->path, node->vault.path) != 0)
		return error_set(
			-EACCES,
			"node %s may not use the vault %.100s: its own "
			"rack.vault is %s",
			node->name, place->path,
			node->vault.path[0] ? node->vault.path : "not set");
	memcpy(place->endpoint, node->vault.endpoint, sizeof(place->endpoint));
	memcpy(place->region, node->vault.region, sizeof(place->region));
	place->is_over = &all->is_over;
	return vault_place_is_s3(place->path) && !place->key.id[0]
		       ? error_set(-EACCES,
				   "the controller has no key for %.100s: "
				   "rack.vault_key_file in its rack.ini",
				   place->path)
		       : 0;
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

/* "vault", and "key" where that is S3. */
static int take_place(const json_t *row, struct vault_place *out)
{
	const json_t *key = json_object_get(row, "key");
	int err = take_text(row, "vault", out->path, sizeof(out->path));

	if (err || !key)
		return err;
	err = take_text(key, "id", out->key.id, sizeof(out->key.id));
	if (!err)
		err = take_text(key, "secret", out->key.secret,
				sizeof(out->key.secret));
	return err ? err
		   : take_text(key, "session", out->key.session,
			       sizeof(out->key.session));
}

static int take_what(const json_t *row, enum what *out)
{
	static const char *const words[] = {"save", "manifest", "erase",
					    "halt"};
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
				    &t->image.block.object);
	if (!err)
		err = ctl_field_u64(row, "number", true, 0, INT64_MAX,
				    &t->image.block.number);
	if (json_is_true(json_object_get(row, "freeze")))
		t->how = BLK_IMAGE_FINAL;
	else if (json_is_true(json_object_get(row, "halted")))
		t->how = BLK_IMAGE_HALTED;
	return err ? err
		   : ctl_field_u64(row, "image_id", true, 1, INT64_MAX,
				   &t->image.block.image);
}

static int parse(const json_t *row, struct task *t)
{
	int err = take_what(row, &t->what);

	if (!err)
		err = take_place(row, &t->image.place);
	if (!err)
		err = take_text(row, "image", t->image.dir,
				sizeof(t->image.dir));
	if (!err && (t->what == SAVE || t->what == HALT))
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
		err = check_place(node, all, &t->image.place);
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
		(void)snprintf(crc, sizeof(crc), "%016" PRIx64, t->sum.crc);
		row = json_pack("{s:I, s:s, s:s, s:I, s:s, s:i, s:I}", "id",
				(json_int_t)t->id, "end",
				t->err ? code : "done", "why", t->why, "bytes",
				(json_int_t)t->sum.bytes, "crc", crc, "flags",
				(int)t->sum.flags, "items",
				(json_int_t)t->sum.items);
		if (t->sum.slots)
			(void)json_object_set(row, "slots", t->sum.slots);
		(void)json_array_append_new(rows, row);
	}
	(void)json_object_set_new(beat, "tasks", rows);
}

/* ---- blocks from images -------------------------------------------------- */

int mem_load_parse(const json_t *row, struct mem_load *out)
{
	int err = take_place(row, &out->image.place);

	if (!err)
		err = take_text(row, "image", out->image.dir,
				sizeof(out->image.dir));
	if (!err)
		err = ctl_field_u64(row, "image_id", true, 1, INT64_MAX,
				    &out->image.block.image);
	return err ? err
		   : ctl_field_u64(row, "object", true, 1, INT64_MAX,
				   &out->image.block.object);
}

int mem_task_load(struct mem_node *node, struct mem_block *m,
		  const struct blk_place *place, const struct mem_load *load)
{
	struct task *t;
	int err = start(node);

	if (err)
		return err;
	t = calloc(1, sizeof(*t));
	if (!t)
		return error_set(-ENOMEM, "no memory for a task");
	t->what = LOAD;
	t->m = m;
	t->into = *place;
	t->image = load->image;
	err = check_place(node, node->tasks, &t->image.place);
	if (err) {
		vault_key_forget(&t->image.place.key);
		free(t);
		return err;
	}
	append(node->tasks, t);
	return 0;
}
