/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A node that has shared memory and does not lead: it offers its arena to the
 * switch, again in each term and whenever the switch has given it up, and makes
 * zeros of the parts that the lead names there. It knows nothing of segments
 * and machines.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "base/log.h"
#include "shared_priv.h"

static bool is_true(const json_t *tree, const char *key)
{
	return json_is_true(json_object_get(tree, key));
}

static int offer(struct mem_node *node)
{
	char words[MEM_CONN_WORDS];
	int err = shared_conn_make(node, words);

	return err ? err
		   : shared_tell(node, "offer name=%s id=%" PRIu64 " %s",
				 node->name, node->shared->id, words);
}

/* The lead has taken care that no machine has a page of these. */
static void scrub(struct mem_node *node, const json_t *rows)
{
	struct mem_shared *s = node->shared;
	const json_t *row;
	size_t i;

	json_array_foreach(rows, i, row)
	{
		uint64_t at = (uint64_t)json_integer_value(
			json_object_get(row, "at"));
		uint64_t bytes = (uint64_t)json_integer_value(
			json_object_get(row, "size"));

		if (at < s->size_bytes && bytes <= s->size_bytes - at)
			memory_scrub(&s->memory, at, bytes);
		s->scrubbed++;
	}
}

static int ask(struct mem_node *node, json_t **answer)
{
	struct mem_shared *s = node->shared;
	char line[256], done[64] = "";
	int err;

	if (s->scrubbed)
		snprintf(done, sizeof(done), " done=%u term=%u", s->scrubbed,
			 s->scrub_term);
	snprintf(line, sizeof(line),
		 "tell coherence arena name=%s id=%" PRIu64 "%s", node->name,
		 s->id, done);
	err = shared_ask(node, line, answer);
	if (!err)
		s->scrubbed = 0;
	return err;
}

int follow_look(struct mem_node *node, const json_t *hello)
{
	struct mem_shared *s = node->shared;
	json_t *answer = NULL;
	int err;

	if (!ctl_switch_program(hello, "coherence")) {
		s->is_ready = false;
		return error_set(-EHOSTDOWN,
				 "the switch does not run the program "
				 "'coherence'");
	}
	shared_conn_addresses(s, hello);
	err = ask(node, &answer);
	if (!err && !is_true(answer, "begun"))
		err = error_set(-EHOSTDOWN,
				"node %s, which leads shared memory, has not "
				"begun yet",
				s->lead);
	if (!err) {
		s->term = (uint32_t)json_integer_value(
			json_object_get(answer, "term"));
		s->scrub_term = s->term;
		scrub(node, json_object_get(answer, "scrub"));
		if (!is_true(answer, "known") || is_true(answer, "lost"))
			err = offer(node);
		else if (!is_true(answer, "taken"))
			err = error_set(-EAGAIN,
					"node %s, which leads shared memory, "
					"has not taken what this node offers",
					s->lead);
	}
	s->is_ready =
		!err && is_true(answer, "taken") && !is_true(answer, "lost");
	json_decref(answer);
	return err;
}
