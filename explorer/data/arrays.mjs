// Names and shapes of arrays, as people read them.

export const stem = (name) => name.replace(/\.[^.]*$/, '');
/** The name of an array; the array of a .npy file has the file's name. */
export const titleOf = (array) => array.name || stem(array.file);
export const shapeOf = (shape) => `(${shape.join(', ')})`;
/** Identifies an array among all that are loaded. */
export const placeOf = (array) => `${array.file}:${array.name}`;
