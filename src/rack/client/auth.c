/* SPDX-License-Identifier: Apache-2.0 */
/* Keys of connections, as nodes and engines give them (nic.auth = psk). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/config.h"
#include "base/error.h"
#include "base/hex.h"
#include "client_priv.h"

void client_auth_offer(const struct client_verbs *v, json_t *body)
{
	if (v->set_auth)
		(void)json_object_set_new(body, "auth", json_string("psk"));
}

int client_auth_parse(const struct aq_rack *rack, const json_t *reply,
		      const char *who, struct client_auth *out)
{
	const char *s = json_string_value(json_object_get(reply, "auth"));

	*out = (struct client_auth){.is_set = s != NULL};
	if (!s && strcmp(config_string(rack->config, "nic", "auth"), "psk"))
		return 0;
	if (!s)
		return error_set(-EPROTO,
				 "nic.auth is psk here, but the %s does not "
				 "authenticate packets",
				 who);
	if (!hex_read(s, out->key, sizeof(out->key)))
		return error_set(-EPROTO,
				 "the %s's answer has no usable 'auth'", who);
	return 0;
}

int client_auth_use(const struct client_verbs *v, struct ibv_qp *qp,
		    struct client_auth *auth)
{
	int err = 0;

	if (auth->is_set)
		err = v->set_auth
			      ? v->set_auth(qp, auth->key, sizeof(auth->key))
			      : -EOPNOTSUPP;
	explicit_bzero(auth->key, sizeof(auth->key));
	return err ? error_set(err, "this NIC cannot authenticate packets") : 0;
}
