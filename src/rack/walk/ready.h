/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ready walks: images for well-known structures, made for a layout that is
 * given as offsets (struct aq_walk_shape).
 */
#ifndef AQ_WALK_READY_H
#define AQ_WALK_READY_H

#include <aquifer/walk_shape.h>

#include "build.h"

/*
 * The image lives as long as *build; destroy that. -EINVAL with error_last():
 * the shape is impossible, or its walk is longer than longest_max (as for
 * walk_verify). -ENOMEM.
 */
int walk_ready(const struct aq_walk_shape *shape, uint32_t longest_max,
	       struct walk_build **build, struct walk_image *image) MUST_CHECK;

#endif
