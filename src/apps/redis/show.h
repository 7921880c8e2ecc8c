/* SPDX-License-Identifier: Apache-2.0 */
#ifndef AQ_REDIS_SHOW_H
#define AQ_REDIS_SHOW_H

#include "redis.h"

struct uplink;

/* Joins the rack's controller, if there is one; or NULL. */
struct uplink *gateway_show(const struct daemon *d);

#endif
