/* SPDX-License-Identifier: Apache-2.0 */
/* One request says that all of a client's connections or sessions live. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "ctl_bond.h"

void ctl_bond_format(uint64_t nonce, uint32_t slot, char out[CTL_BOND_TEXT])
{
	(void)snprintf(out, CTL_BOND_TEXT, "%016" PRIx64 "%04x", nonce,
		       slot & 0xffff);
}

int ctl_bond_parse(const char *what, const char *id, uint64_t *nonce,
		   uint32_t *slot)
{
	char first[16 + 1];

	if (strlen(id) != CTL_BOND_TEXT - 1 ||
	    strspn(id, "0123456789abcdef") != CTL_BOND_TEXT - 1)
		return error_set(-EINVAL, "%s's id has %d hex digits", what,
				 CTL_BOND_TEXT - 1);
	memcpy(first, id, 16);
	first[16] = '\0';
	*nonce = strtoull(first, NULL, 16);
	*slot = (uint32_t)strtoul(id + 16, NULL, 16);
	return 0;
}

void ctl_bonds_heartbeat(void *ctx, struct ctl_call *call, const char *list,
			 unsigned max, ctl_bond_fn live)
{
	const json_t *ids = json_object_get(call->body, list);
	json_t *lost = json_array();
	int err = 0;

	if (!json_is_array(ids) || json_array_size(ids) > max)
		err = error_set(-EINVAL, "\"%s\" is a list of up to %u ids",
				list, max);
	for (size_t i = 0; !err && i < json_array_size(ids); i++) {
		const char *id = json_string_value(json_array_get(ids, i));

		err = id ? live(ctx, call, id)
			 : error_set(-EINVAL, "\"%s\" is a list of ids", list);
		if (err == -ESTALE)
			err = json_array_append_new(lost, json_string(id))
				      ? error_set(-ENOMEM,
						  "no memory for an answer")
				      : 0;
	}
	if (!err) {
		ctl_reply_json(call->reply, 200,
			       json_pack("{s:o}", "lost", lost));
		return;
	}
	json_decref(lost);
	ctl_reply_last_error(call->reply, err);
}
