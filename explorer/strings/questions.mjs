// Text of Questions. The text of an exhibit comes from the engine.
export const questions = {
  'questions.title': {en: 'Common questions', zh: '常见问题'},
  'questions.lead': {
    en: 'Eighteen questions, from easy to hard. Each is answered with numbers computed live. Change the settings, and try the wrong way too.',
    zh: '十八个问题，由易到难，每个都用实时算出的数字来回答。可以切换选项，也试试错误的做法。',
  },
  'questions.list': {en: 'All questions', zh: '所有问题'},
  'questions.count': {en: 'Question {0} of {1}', zh: '第 {0} 个问题，共 {1} 个'},
  'questions.right': {en: '✓ right:', zh: '✓ 正确：'},
  'questions.wrong': {en: '✗ wrong:', zh: '✗ 错误：'},
  'questions.asTable': {en: 'As a table', zh: '以表格显示'},
  'questions.twin': {en: 'In a terminal:', zh: '在终端里：'},
  'questions.back': {en: '← Previous question', zh: '← 上一题'},
  'questions.forward': {en: 'Next question →', zh: '下一题 →'},
};
