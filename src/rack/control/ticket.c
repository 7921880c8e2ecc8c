/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets: their bytes, and who signed them. */
#include "ctl_ticket.h"

#include <errno.h>
#include <sodium.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/hex.h"

/* What is signed, and the signature. */
struct layout {
	char magic[4];
	le32 key_id;
	le64 object;
	le64 end_s;
	uint8_t rights;
	uint8_t kind;
	uint8_t by[CTL_TICKET_BY_BYTES];
	char tenant[CTL_TICKET_TENANT_MAX]; /* filled up with zeros */
	uint8_t signature[crypto_sign_BYTES];
};

enum {
	SIGNED_BYTES = 64,
};

STATIC_ASSERT(sizeof(struct layout) == CTL_TICKET_BYTES, "ticket");
STATIC_ASSERT(offsetof(struct layout, signature) == SIGNED_BYTES, "ticket");
STATIC_ASSERT((int)crypto_sign_SEEDBYTES == (int)CTL_TICKET_SEED_BYTES, "seed");
STATIC_ASSERT((int)crypto_sign_PUBLICKEYBYTES == (int)CTL_TICKET_KEY_BYTES,
	      "public key");

static const char magic[4] = {'A', 'Q', 'T', '1'};

void ctl_ticket_public(const uint8_t seed[CTL_TICKET_SEED_BYTES],
		       uint8_t out[CTL_TICKET_KEY_BYTES])
{
	uint8_t secret[crypto_sign_SECRETKEYBYTES];

	(void)crypto_sign_seed_keypair(out, secret, seed); /* cannot fail */
	sodium_memzero(secret, sizeof(secret));
}

void ctl_ticket_sign(const struct ctl_ticket *t,
		     const uint8_t seed[CTL_TICKET_SEED_BYTES],
		     uint8_t out[CTL_TICKET_BYTES])
{
	uint8_t public[CTL_TICKET_KEY_BYTES];
	uint8_t secret[crypto_sign_SECRETKEYBYTES];
	struct layout l = {
		.key_id = le32_put(t->key_id),
		.object = le64_put(t->object),
		.end_s = le64_put(t->end_s),
		.rights = t->rights,
		.kind = t->kind,
	};

	memcpy(l.magic, magic, sizeof(magic));
	memcpy(l.by, t->by, sizeof(l.by));
	memcpy(l.tenant, t->tenant, strnlen(t->tenant, sizeof(l.tenant)));
	/* Neither can fail. */
	(void)crypto_sign_seed_keypair(public, secret, seed);
	(void)crypto_sign_detached(l.signature, NULL, (const uint8_t *)&l,
				   SIGNED_BYTES, secret);
	sodium_memzero(secret, sizeof(secret));
	memcpy(out, &l, sizeof(l));
}

/* ---- verifying ---------------------------------------------------------- */

static bool is_zero(const void *bytes, size_t len_bytes)
{
	return sodium_is_zero(bytes, len_bytes) == 1;
}

/* One text for each ticket: what is not used is zero. */
static bool has_form(const struct layout *l)
{
	size_t chars = strnlen(l->tenant, sizeof(l->tenant));

	return memcmp(l->magic, magic, sizeof(magic)) == 0 && l->rights &&
	       l->rights <= (CTL_TICKET_READ | CTL_TICKET_CHANGE) &&
	       l->kind >= CTL_TICKET_FILE && l->kind <= CTL_TICKET_EKV &&
	       chars && is_zero(l->tenant + chars, sizeof(l->tenant) - chars);
}

int ctl_ticket_verify(const uint8_t bytes[CTL_TICKET_BYTES],
		      const struct ctl_ticket_keys *keys, uint64_t wall_s,
		      struct ctl_ticket *out)
{
	struct ctl_ticket t = {0};
	struct layout l;
	unsigned k = 0;

	memcpy(&l, bytes, sizeof(l));
	if (!has_form(&l))
		return error_set(-EPROTO, "these bytes are no ticket");
	t.key_id = le32_get(l.key_id);
	while (k < keys->count && keys->key[k].id != t.key_id)
		k++;
	if (k == keys->count)
		return error_set(-ENOKEY,
				 "the ticket is signed with key %u, which is "
				 "not known here",
				 t.key_id);
	if (crypto_sign_verify_detached(l.signature, (const uint8_t *)&l,
					SIGNED_BYTES, keys->key[k].key))
		return error_set(-EKEYREJECTED,
				 "the controller has not signed this ticket");
	t.object = le64_get(l.object);
	t.end_s = le64_get(l.end_s);
	t.rights = l.rights;
	t.kind = l.kind;
	memcpy(t.by, l.by, sizeof(t.by));
	memcpy(t.tenant, l.tenant, sizeof(l.tenant));
	if (wall_s > t.end_s && wall_s - t.end_s > CTL_TICKET_SLACK_S)
		return error_set(-EKEYEXPIRED,
				 "the ticket has ended; ask the controller for "
				 "the map again");
	*out = t;
	return 0;
}

bool ctl_ticket_is_of(const struct ctl_ticket *t,
		      const uint8_t by[CTL_TICKET_BY_BYTES])
{
	return is_zero(t->by, sizeof(t->by)) ||
	       sodium_memcmp(t->by, by, sizeof(t->by)) == 0;
}

int ctl_ticket_keys_parse(const json_t *list, struct ctl_ticket_keys *out)
{
	struct ctl_ticket_keys keys = {0};
	const json_t *row;
	size_t i;

	if (!json_is_array(list) || json_array_size(list) > CTL_TICKET_KEYS_MAX)
		return error_set(-EPROTO,
				 "\"ticket_keys\" is a list of %d at "
				 "most",
				 CTL_TICKET_KEYS_MAX);
	json_array_foreach(list, i, row)
	{
		const json_t *id = json_object_get(row, "id");
		const char *key =
			json_string_value(json_object_get(row, "key"));

		if (!json_is_integer(id) || json_integer_value(id) < 0 ||
		    json_integer_value(id) > UINT32_MAX ||
		    !hex_read(key, keys.key[i].key, CTL_TICKET_KEY_BYTES))
			return error_set(-EPROTO, "\"ticket_keys\" has objects "
						  "with id and key");
		keys.key[i].id = (uint32_t)json_integer_value(id);
		keys.count++;
	}
	*out = keys;
	return 0;
}
