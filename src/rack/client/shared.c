/* SPDX-License-Identifier: Apache-2.0 */
/* Finding the lead, and asking it. */
#include "shared.h"

#include <errno.h>

#include "base/error.h"
#include "client_priv.h"
#include "keepalive.h"

uint64_t client_shared_size(const json_t *status)
{
	const json_t *shared = json_object_get(status, "shared");
	uint64_t size_bytes;

	if (json_object_get(shared, "lead")) /* another node leads */
		return 0;
	return client_json_u64(shared, "extent", INT64_MAX, &size_bytes) == 0
		       ? size_bytes
		       : 0;
}

int client_shared_call(struct aq_rack *rack, const struct client_lead *lead,
		       const char *method, const char *path, json_t *body,
		       json_t **reply)
{
	const struct client_caller *caller;
	int err = client_keep_caller(rack, &caller);

	if (err) {
		json_decref(body);
		return err;
	}
	return client_call(caller, client_keep_node(rack, lead->node), method,
			   path, body, aq_rack_deadline(rack), CLIENT_REPLY_MAX,
			   reply);
}

int client_shared_find(struct aq_rack *rack, struct client_lead *out)
{
	uint32_t count;
	int err = client_rack_check(rack);

	if (err)
		return err;
	client_rack_rescan(rack);
	count = client_rack_nodes(rack);
	for (uint32_t i = 0; i < count; i++) {
		struct client_lead lead = {.node = i};
		json_t *reply = NULL;

		/* One that does not answer may have it: the words say so. */
		if (client_shared_call(rack, &lead, "GET", "/v1/status", NULL,
				       &reply))
			continue;
		lead.size_bytes = client_shared_size(reply);
		json_decref(reply);
		if (lead.size_bytes) {
			*out = lead;
			return 0;
		}
	}
	return error_set(-EOPNOTSUPP,
			 "no memory node of this rack has shared memory, or it "
			 "does not answer; give one a --shared SIZE");
}

const char *client_shared_rack(const struct aq_rack *rack)
{
	return rack->name;
}
