/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to the structures, and their answers. */
#include <string.h>

#include "wfig_count.h"
#include "wfig_data.h"

static void ask_web(const struct wfig_data *d, uint64_t key,
		    struct wfig_ask *ask)
{
	struct aq_walk_find *pad = (void *)ask->pad;
	uint64_t name = ycsb_key(key);

	memcpy(pad->key, &name, sizeof(name));
	ask->start = d->start[key / WFIG_WEB_CHAIN];
	ask->send_bytes = sizeof(*pad) + sizeof(name);
	ask->total = d->value[key];
}

static void ask_tree(const struct wfig_data *d, uint64_t rank,
		     struct wfig_ask *ask)
{
	uint64_t first = u64_min(rank, d->count - d->span);
	uint64_t last = first + d->span - 1;

	ask->start = d->start[0];
	ask->first = first;
	ask->count = d->span;
	ask->total = d->sum[last + 1] - d->sum[first];
	if (d->cfg.app == WFIG_RANGE) {
		struct aq_walk_scan *pad = (void *)ask->pad;

		pad->low = d->sorted[first];
		pad->high = d->sorted[last];
		ask->send_bytes = sizeof(*pad);
	} else {
		struct aq_walk_reduce *pad = (void *)ask->pad;

		pad->low = d->sorted[first];
		pad->high = d->sorted[last];
		ask->send_bytes = offsetof(struct aq_walk_reduce, sum);
	}
}

void wfig_data_ask(const struct wfig_data *d, struct rng *r,
		   struct wfig_ask *ask)
{
	uint64_t key = ycsb_keys_scatter(&d->keys, ycsb_keys_rank(&d->keys, r));

	memset(ask, 0, sizeof(*ask));
	ask->pad_bytes = d->program->image.pad_bytes;
	if (d->cfg.app == WFIG_WEB)
		ask_web(d, key, ask);
	else
		ask_tree(d, key, ask);
}

static bool check_scan(const struct wfig_data *d, const struct wfig_ask *ask,
		       const struct aq_walk_scan *pad)
{
	uint64_t total = 0;

	if (pad->found != ask->count)
		return false;
	for (uint64_t i = 0; i < pad->found; i++) {
		uint64_t pair[2];

		memcpy(pair, pad->pairs + i * sizeof(pair), sizeof(pair));
		if (pair[0] != d->sorted[ask->first + i])
			return false;
		total += pair[1];
	}
	return total == ask->total;
}

bool wfig_data_check(const struct wfig_data *d, const struct wfig_ask *ask,
		     const uint8_t *pad)
{
	const struct aq_walk_find *find = (const void *)pad;
	const struct aq_walk_reduce *reduce = (const void *)pad;
	uint64_t value;

	switch (d->cfg.app) {
	case WFIG_WEB:
		memcpy(&value, pad + aq_walk_value_at(&d->shape),
		       sizeof(value));
		return find->found == 1 && value == ask->total;
	case WFIG_RANGE:
		return check_scan(d, ask, (const void *)pad);
	case WFIG_TSV:
	case WFIG_APPS:
		break;
	}
	return reduce->count == ask->count && reduce->sum == ask->total;
}

void wfig_data_walk(const struct wfig_data *d, struct wfig_ask *ask,
		    struct wfig_visit *v)
{
	uint64_t at = ask->start, local;
	uint32_t before = UINT32_MAX;
	enum walk_step step;

	do {
		uint32_t node = wfig_data_node(d, at, &local);

		if (v->touch)
			v->touch(v->ctx, node, local);
		v->visits++;
		v->crossings += before != UINT32_MAX && node != before;
		before = node;
		step = wfig_count_step(d->counted,
				       d->piece[node] + local +
					       d->counted->image.load_lo,
				       ask->pad, &at, &v->cost);
	} while (step == WALK_STEP_NEXT);
	v->right = step == WALK_STEP_DONE && wfig_data_check(d, ask, ask->pad);
}
