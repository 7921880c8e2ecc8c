/* SPDX-License-Identifier: Apache-2.0 */
/* What all back ends have in common: the calls, and the shape of rows. */
#include "ledger.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "ledger_mem.h"

int ledger_lead(struct ledger *l, const char *who, uint64_t *term)
{
	if (strlen(who) >= LEDGER_WHO_MAX)
		return error_set(-EINVAL, "the address %.40s... is too long",
				 who);
	return l->ops->lead(l, who, term);
}

int ledger_keep(struct ledger *l, uint64_t term)
{
	return l->ops->keep(l, term);
}

int ledger_leader(struct ledger *l, char who[LEDGER_WHO_MAX])
{
	return l->ops->leader(l, who);
}

int ledger_term(struct ledger *l, uint64_t *term)
{
	return l->ops->term(l, term);
}

int ledger_raise(struct ledger *l, uint64_t term)
{
	return l->ops->raise(l, term);
}

struct whole {
	ledger_row_fn each;
	void *user;
};

static int whole_row(void *user, const char *kind, const char *key,
		     const char *value)
{
	const struct whole *w = user;

	if (strcmp(kind, LEDGER_HALF_KIND) == 0)
		return error_set(-EBADMSG, "'aquifer control load' has broken "
					   "off here; do it again");
	return w->each(w->user, kind, key, value);
}

int ledger_read(struct ledger *l, ledger_row_fn each, void *user)
{
	struct whole w = {each, user};

	return l->ops->read(l, whole_row, &w);
}

/* Printable, so that people can read a ledger with other programs. */
static bool is_word(const char *text, size_t max)
{
	size_t n = 0;

	for (; text[n]; n++)
		if (n == max || text[n] <= ' ' || text[n] > '~')
			return false;
	return n > 0;
}

/* Behind such a kind '/' comes before every other one, so a store that sorts
 * KIND/KEY sorts by kind and key. */
static bool is_kind(const char *text)
{
	size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");

	return n > 0 && n <= LEDGER_KIND_MAX && !text[n];
}

int ledger_change_check(const struct ledger_change *c)
{
	if (!is_kind(c->kind))
		return error_set(-EINVAL,
				 "a row's kind has 1 to %d of a-z, 0-9 and '_'",
				 LEDGER_KIND_MAX);
	if (!is_word(c->key, LEDGER_KEY_MAX))
		return error_set(-EINVAL,
				 "a row's key has 1 to %d characters and no "
				 "blank",
				 LEDGER_KEY_MAX);
	if (c->value && strlen(c->value) > LEDGER_VALUE_MAX)
		return error_set(-EINVAL, "row %s %s has more than %d bytes",
				 c->kind, c->key, LEDGER_VALUE_MAX);
	return 0;
}

int ledger_commit(struct ledger *l, uint64_t term,
		  const struct ledger_change *change, unsigned count)
{
	if (count > LEDGER_CHANGES_MAX)
		return error_set(-EINVAL,
				 "a transaction has at most %d changes, not %u",
				 LEDGER_CHANGES_MAX, count);
	for (unsigned i = 0; i < count; i++) {
		int err = ledger_change_check(&change[i]);

		if (err)
			return err;
	}
	return l->ops->commit(l, term, change, count);
}

void ledger_close(struct ledger *l)
{
	if (l)
		l->ops->close(l);
}

const char *ledger_path(const char *text)
{
	return strncmp(text, "sqlite:", 7) == 0 && text[7] ? text + 7 : NULL;
}

int ledger_open(const struct ledger_place *place, struct ledger **out)
{
	const char *text = place->store;

	if (strcmp(text, "memory") == 0)
		return ledger_mem_alone(out);
	if (ledger_path(text))
		return ledger_sqlite_open(ledger_path(text), out);
	if (strncmp(text, "etcd:", 5) == 0)
		return ledger_etcd_open(text + 5, place, out);
	return error_set(-EINVAL,
			 "'%.60s' is no place for a controller's state; "
			 "sqlite:PATH, etcd:URL,URL,..., or memory, which "
			 "forgets",
			 text);
}
