/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The libibverbs front end, as other rooms see it: where its devices come from,
 * and the way from a context to the host below it. Everything else is
 * <infiniband/verbs.h>.
 */
#ifndef AQ_VERBS_H
#define AQ_VERBS_H

#include <infiniband/verbs.h>

struct nic_host;
struct nic_provider;

/*
 * From here on ibv_get_device_list names the devices of this provider; NULL
 * goes back to verbs_default_provider(). The provider must outlive every list
 * and context made from it. Any thread.
 */
void verbs_set_provider(const struct nic_provider *provider);

/* The host behind a context, or NULL when the context is not ours or, in a
 * forked child, no NIC could be opened. Valid as long as the context is
 * open. */
struct nic_host *verbs_host(struct ibv_context *context);

#endif
