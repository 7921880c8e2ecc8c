/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as a dump of a controller, and its rows as those of a ledger that a
 * controller reads. A text that is taken is printed and taken again, the same;
 * a controller that takes the rows leads with them and commits what it thinks
 * is left to do.
 */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "controld/controld.h"
#include "fuzz.h"
#include "ledger/ledger_copy.h"

#define T8(c)  c c c c c c c c
#define T64(c) T8(T8(c))

static uint64_t now_ns(struct env *env)
{
	(void)env;
	return 1000000000;
}

static void fill(struct env *env, void *buf, size_t len)
{
	(void)env;
	memset(buf, 7, len);
}

static const struct env_ops ops = {.now_ns = now_ns, .random = fill};

static void print_again(const struct ledger_copy *c)
{
	struct ledger_copy again;
	size_t len = 0;
	char *text = ledger_copy_print(c, &len);

	ASSERT(text);
	ASSERT(ledger_copy_parse(text, len, &again) == 0);
	ASSERT(again.term == c->term && again.rows.count == c->rows.count);
	for (size_t i = 0; i < c->rows.count; i++) {
		ASSERT(strcmp(c->rows.row[i].kind, again.rows.row[i].kind) ==
		       0);
		ASSERT(strcmp(c->rows.row[i].key, again.rows.row[i].key) == 0);
	}
	ledger_copy_free(&again);
	free(text);
}

static void lead(const struct ledger_copy *c)
{
	struct env env = {.ops = &ops};
	const struct cd_config config = {
		.name = "c0",
		.env = &env,
		.admin_token = T64("a"),
		.node_token = T64("b"),
		.default_token = T64("c"),
	};
	struct ledger_change change[LEDGER_CHANGES_MAX];
	struct cd_core *core;
	unsigned count;
	int err = cd_core_create(&config, &core);

	ASSERT(!err);
	cd_core_clear(core);
	if (ledger_rows_each(&c->rows, cd_core_row, core) == 0 &&
	    cd_core_lead(core, 3) == 0) {
		cd_core_keep(core, UINT64_MAX);
		cd_core_tick(core, 1);
		while ((count = cd_core_batch(core, change))) {
			for (unsigned i = 0; i < count; i++)
				ASSERT(ledger_change_check(&change[i]) == 0);
			cd_core_committed(core, 0);
		}
	}
	cd_core_destroy(core);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len_bytes)
{
	struct ledger_copy c;

	if (ledger_copy_parse((const char *)data, len_bytes, &c))
		return 0;
	print_again(&c);
	lead(&c);
	ledger_copy_free(&c);
	return 0;
}
